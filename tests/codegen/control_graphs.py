"""Graphs with branches and loops, as texts, each with the body of the code that is expected of it and example calls."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import clew
from clew.ir.graph import Graph


@dataclass(frozen=True)
class Case:
    """A graph, its code, and inputs with the results that they must give."""

    name: str
    text: str
    code: str
    calls: tuple[tuple[tuple[Any, ...], Any], ...]

    def graph(self) -> Graph:
        """The graph anew."""
        return clew.parse(self.text, allow="tests")

    def lines(self) -> str:
        """The expected function."""
        return textwrap.dedent(self.code).lstrip("\n")


CASES = [
    Case(
        "two results",
        """
            graph(%x, %y) {
              %gt = function operator.gt(%x, 0)
              %cond = function clew.cond(%gt, graph(%a, %b) {
                %add = function operator.add(%a, %b)
                %mul = function operator.mul(%add, 2)
                return (%mul, %a)
              }, graph(%a, %b) {
                %sub = function operator.sub(%a, %b)
                return (%sub, 1)
              }, (%x, %y))
              %u = function operator.getitem(%cond, 0)
              %v = function operator.getitem(%cond, 1)
              %out = function operator.add(%u, %v)
              return (%out, %y)
            }
        """,
        """
            def forward(self, x, y):
                if x > 0:
                    add = x + y
                    u = add * 2;  add = None
                    v = x;  x = None
                else:
                    u = x - y;  x = None
                    v = 1
                out = u + v;  u = v = None
                return (out, y)
        """,
        (
            ((3, 1), (11, 1)),
            ((-3, 1), (-3, 1)),
        ),
    ),
    Case(
        "elif",
        """
            graph(%x) {
              %gt = function operator.gt(%x, 10)
              %size = function clew.cond(%gt, graph(%x) {
                return 'large'
              }, graph(%x) {
                %gt = function operator.gt(%x, 5)
                %inner = function clew.cond(%gt, graph() {
                  return 'middle'
                }, graph() {
                  return 'small'
                }, ())
                return %inner
              }, (%x,))
              %upper = method upper(%size)
              return %upper
            }
        """,
        """
            def forward(self, x):
                if x > 10:
                    size = 'large'
                elif x > 5:
                    size = 'middle'
                else:
                    size = 'small'
                x = None
                upper = size.upper();  size = None
                return upper
        """,
        (
            ((11,), "LARGE"),
            ((7,), "MIDDLE"),
            ((0,), "SMALL"),
        ),
    ),
    Case(
        "values that change places",
        """
            graph(%n) {
              %range_1 = function builtins.range(%n)
              %loop = function clew.for_loop(%range_1, graph(%a, %b, %i) {
                %add = function operator.add(%a, %b)
                return (%b, %add)
              }, (0, 1))
              %fib = function operator.getitem(%loop, 0)
              return %fib
            }
        """,
        """
            def forward(self, n):
                fib = 0
                b = 1
                for i in range(n):
                    add = fib + b;  fib = None
                    fib = b
                    b = add;  add = None
                n = b = None
                return fib
        """,
        (
            ((0,), 0),
            ((10,), 55),
        ),
    ),
    Case(
        "a start that is used later",
        """
            graph(%x) {
              %loop = function clew.while_loop(graph(%y, %x) {
                %lt = function operator.lt(%y, 100)
                return %lt
              }, graph(%y, %x) {
                %mul = function operator.mul(%y, %x)
                return (%mul,)
              }, (%x,), (%x,))
              %y = function operator.getitem(%loop, 0)
              return (%x, %y)
            }
        """,
        """
            def forward(self, x):
                y = x
                while y < 100:
                    y = y * x
                return (x, y)
        """,
        (
            ((3,), (3, 243)),
            ((100,), (100, 100)),
        ),
    ),
    Case(
        "a condition that is no expression",
        """
            graph(%x) {
              %loop = function clew.while_loop(graph(%y) {
                %note = function tests.codegen.control_programs.note(%y)
                %a = function operator.mul(%note, %note)
                %lt = function operator.lt(%a, 100)
                return %lt
              }, graph(%y) {
                %mul = function operator.mul(%y, 2)
                return (%mul,)
              }, (%x,))
              %y = function operator.getitem(%loop, 0)
              return %y
            }
        """,
        """
            from tests.codegen.control_programs import note as note_1


            def forward(self, x):
                y = x
                while True:
                    note = note_1(y)
                    if not ((note * note) < 100):
                        break
                    y = y * 2
                x = None
                return y
        """,
        (
            ((1,), 16),
            ((50,), 50),
        ),
    ),
    Case(
        "a flag that stops",
        """
            graph(%xs) {
              %loop = function clew.for_loop(%xs, graph(%s, %x) {
                %s_1 = function operator.add(%s, %x)
                %gt = function operator.gt(%s_1, 10)
                return (%s_1, %gt)
              }, (0,), breaks=True)
              %s = function operator.getitem(%loop, 0)
              return %s
            }
        """,
        """
            def forward(self, xs):
                s = 0
                for x in xs:
                    s = s + x
                    if s > 10:
                        break
                xs = None
                return s
        """,
        (
            (([4, 5, 6, 7],), 15),
            (([],), 0),
        ),
    ),
    Case(
        "effects only",
        """
            graph(%xs, %log) {
              %loop = function clew.for_loop(%xs, graph(%x, %log) {
                %odd = function operator.mod(%x, 2)
                %cond = function clew.cond(%odd, graph(%x, %log) {
                  %append = method append(%log, %x)
                  return None
                }, graph(%x, %log) {
                  return None
                }, (%x, %log))
                return ()
              }, (), (%log,))
              return %log
            }
        """,
        """
            def forward(self, xs, log):
                for x in xs:
                    if x % 2:
                        log.append(x)
                xs = None
                return log
        """,
        ((([1, 2, 3], []), [1, 3]),),
    ),
    Case(
        "inside each other",
        """
            graph(%rows) {
              %outer = function clew.for_loop(%rows, graph(%total, %row) {
                %inner = function clew.for_loop(%row, graph(%total, %item) {
                  %neg = function operator.lt(%item, 0)
                  %cond = function clew.cond(%neg, graph(%total, %item) {
                    return (%total,)
                  }, graph(%total, %item) {
                    %add = function operator.add(%total, %item)
                    return (%add,)
                  }, (%total, %item))
                  %total_1 = function operator.getitem(%cond, 0)
                  return (%total_1,)
                }, (%total,))
                %total_1 = function operator.getitem(%inner, 0)
                return (%total_1, %total_1)
              }, (0,), outputs=1)
              %total = function operator.getitem(%outer, 0)
              %sums = function operator.getitem(%outer, 1)
              return (%total, %sums)
            }
        """,
        """
            def forward(self, rows):
                total = 0
                sums = []
                for row in rows:
                    for item in row:
                        if not (item < 0):
                            total = total + item
                    sums.append(total)
                rows = None
                return (total, sums)
        """,
        ((([[1, -2, 3], [], [4]],), (8, [4, 4, 8])),),
    ),
    Case(
        "a carried value that nobody wants",
        """
            graph(%x) {
              %loop = function clew.while_loop(graph(%x, %n) {
                %lt = function operator.lt(%n, 3)
                return %lt
              }, graph(%x, %n) {
                %mul = function operator.mul(%x, 2)
                %add = function operator.add(%n, 1)
                return (%mul, %add)
              }, (%x, 0))
              %y = function operator.getitem(%loop, 0)
              %abs_1 = function builtins.abs(%y)
              return %abs_1
            }
        """,
        """
            def forward(self, x):
                n = 0
                while n < 3:
                    x = x * 2
                    n = n + 1
                n = None
                abs_1 = abs(x);  x = None
                return abs_1
        """,
        (((-1,), 8),),
    ),
    Case(
        "results used as a whole",
        """
            graph(%x, %c) {
              %cond = function clew.cond(%c, graph(%x) {
                return (%x, 1)
              }, graph(%x) {
                return (%x, 2)
              }, (%x,))
              %list_1 = function builtins.list(%cond)
              %loop = function clew.for_loop(%list_1, graph(%n, %i) {
                return (%i,)
              }, (0,))
              %len_1 = function builtins.len(%loop)
              return (%list_1, %len_1)
            }
        """,
        """
            def forward(self, x, c):
                if c:
                    cond = (x, 1);  x = None
                else:
                    cond = (x, 2);  x = None
                c = None
                list_1 = list(cond);  cond = None
                n = 0
                for i in list_1:
                    n = i
                loop = (n,)
                n = None
                len_1 = len(loop);  loop = None
                return (list_1, len_1)
        """,
        (
            ((5, True), ([5, 1], 1)),
            ((5, False), ([5, 2], 1)),
        ),
    ),
    Case(
        "return in the middle",
        """
            graph(%x) {
              %gt = function operator.gt(%x, 0)
              %cond = function clew.cond(%gt, graph(%x) {
                return ('positive', %x)
              }, graph(%x) {
                %loop = function clew.while_loop(graph(%x, %n) {
                  %abs_1 = function builtins.abs(%x)
                  %gt = function operator.gt(%abs_1, 0)
                  return %gt
                }, graph(%x, %n) {
                  %x_1 = function operator.add(%x, 3)
                  %n_1 = function operator.add(%n, 1)
                  return (%x_1, %n_1)
                }, (%x, 0))
                %x_1 = function operator.getitem(%loop, 0)
                %n = function operator.getitem(%loop, 1)
                return (%x_1, %n)
              }, (%x,))
              return %cond
            }
        """,
        """
            def forward(self, x):
                if x > 0:
                    return ('positive', x)
                n = 0
                while abs(x) > 0:
                    x = x + 3
                    n = n + 1
                return (x, n)
        """,
        (
            ((3,), ("positive", 3)),
            ((-12,), (0, 4)),
        ),
    ),
    Case(
        "break in the middle",
        """
            graph(%n) {
              %range_1 = function builtins.range(%n)
              %loop = function clew.for_loop(%range_1, graph(%total, %sums, %i) {
                %gt = function operator.gt(%i, 3)
                %cond = function clew.cond(%gt, graph(%total, %sums, %i) {
                  return (%total, %sums, True)
                }, graph(%total, %sums, %i) {
                  %total_1 = function operator.add(%total, %i)
                  %append = method append(%sums, %total_1)
                  return (%total_1, %sums, False)
                }, (%total, %sums, %i))
                return %cond
              }, (0, []), breaks=True)
              %total = function operator.getitem(%loop, 0)
              %sums = function operator.getitem(%loop, 1)
              return (%total, %sums)
            }
        """,
        """
            def forward(self, n):
                total = 0
                sums = []
                for i in range(n):
                    if i > 3:
                        break
                    total = total + i
                    sums.append(total)
                n = None
                return (total, sums)
        """,
        (
            ((10,), (6, [0, 1, 3, 6])),
            ((2,), (1, [0, 1])),
        ),
    ),
    Case(
        "flag overwritten",
        """
            graph(%xs) {
              %loop = function clew.for_loop(%xs, graph(%last, %x) {
                return (%x, %last)
              }, (0,), breaks=True)
              %last = function operator.getitem(%loop, 0)
              return %last
            }
        """,
        """
            def forward(self, xs):
                last = 0
                for x in xs:
                    last, stop = x, last
                    if stop:
                        break
                xs = None
                return last
        """,
        ((([1, 0, 2],), 0),),
    ),
    Case(
        "items that are tuples",
        """
            graph(%xs, %ys) {
              %zip_1 = function builtins.zip(%xs, %ys)
              %loop = function clew.for_loop(%zip_1, graph(%best, %pair) {
                %x = function operator.getitem(%pair, 0)
                %y = function operator.getitem(%pair, 1)
                %y_1 = function operator.getitem(%pair, 1)
                %best_1 = function builtins.max(%best, %x, %y, %y_1)
                return (%best_1,)
              }, (0,))
              %best = function operator.getitem(%loop, 0)
              %enumerate_2 = function builtins.enumerate(%xs)
              %loop_1 = function clew.for_loop(%enumerate_2, graph(%last, %pair) {
                %x = function operator.getitem(%pair, 1)
                %add = function operator.add(%x, %last)
                return (%x, %add)
              }, (%best,), outputs=1)
              %sums = function operator.getitem(%loop_1, 1)
              return (%best, %sums)
            }
        """,
        """
            def forward(self, xs, ys):
                best = 0
                for x, y in zip(xs, ys):
                    best = max(best, x, y, y)
                ys = None
                last = best
                sums = []
                for _, x_1 in enumerate(xs):
                    add = x_1 + last;  last = None
                    sums.append(add)
                    last = x_1;  add = None
                xs = last = None
                return (best, sums)
        """,
        ((([1, 5], [4, 2]), (5, [6, 6])),),
    ),
]
