"""Tests of sizes in torch programs."""
