"""A module beside a program that looks at the world outside for it."""

from __future__ import annotations

import configparser
import csv
import json
import os
import random
import sys
import time
from pathlib import Path


def read(place):
    with open(place) as file:
        return file.read()


def read_by_lines(place):
    return [line.rstrip() for line in Path(place).open()]


def rows_of(place):
    with open(place, newline="") as file:
        return list(csv.reader(file))


def read_json(place):
    return json.load(open(place))  # noqa: SIM115


def setting(name):
    return os.environ.get(name, "0")


def configured(place):
    parser = configparser.ConfigParser()
    parser.read_string("[all]\nvalue = " + read(place))
    return parser.getfloat("all", "value")


class Timer:
    def __enter__(self):
        self.began = time.monotonic()
        return self

    def __exit__(self, *error):
        self.took = time.monotonic() - self.began


class Dice:
    sides = 6

    def __init__(self):
        self.draw = random.randint

    def roll(self):
        return self.draw(1, self.sides)

    @staticmethod
    def coin():
        return random.choice([0.0, 1.0])

    @classmethod
    def many(cls, count):
        return random.sample(range(100 * cls.sides), count)


def told_by_helper(logger, text):
    logger.warning(text)


def lengthen_path():
    sys.path.append("/nowhere")
