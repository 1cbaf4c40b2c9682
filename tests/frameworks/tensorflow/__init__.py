"""Tests of captures of TensorFlow programs."""
