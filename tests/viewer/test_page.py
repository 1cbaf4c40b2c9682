"""The page of a view, in a real browser: clicks, keys, search, two graphs, profiles, any names, and large graphs."""

from __future__ import annotations

import hashlib
import html
import json
import re

import pytest
import torch

import clew
from benchmarks.chromium import Browser, find
from clew.viewer.page import embedded, script
from tests.architecture.project import ROOT
from tests.viewer.programs import captured_deciding, captured_model, hostile_graph, large_graph

needs_browser = pytest.mark.skipif(find() is None, reason="no Chromium is installed: apt-get install chromium")
HOSTILE = (
    "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>\"'`${window.hacked=1}\u2028\U0001f600"
)


@pytest.fixture(scope="module")
def browser():
    with Browser() as found:
        yield found


@pytest.fixture
def shown(browser, tmp_path):
    def show(captured, **options) -> Browser:
        path = tmp_path / "view.html"
        clew.view(captured, path, **options)
        browser.messages.clear()
        browser.call("Storage.clearDataForOrigin", origin="file://", storageTypes="local_storage")
        browser.open(path)
        settle(browser)  # the first layout moves the cards: a click at where they were before hits nothing
        return browser

    yield show
    assert browser.errors() == []
    assert [url for url in browser.requests() if not url.startswith("file:")] == []


def cards(browser: Browser) -> list[str]:
    return browser.run(
        "[...document.querySelectorAll('.card')].map((one) => one.getAttribute('aria-label').split(',')[0])"
    )


def place(browser: Browser, label: str) -> tuple[float, float]:
    """The middle of the upper part of the card with a label."""
    found = browser.run(
        f"(() => {{ const one = [...document.querySelectorAll('.card')].find((card) => card.getAttribute('aria-label')"
        f".split(',')[0] === {json.dumps(label)}).querySelector('.back').getBoundingClientRect();"
        " return [one.x + one.width / 2, one.y + 12]; })()"
    )
    return found[0], found[1]


def selected(browser: Browser) -> str:
    return browser.run("document.querySelector('.selected')?.getAttribute('aria-label').split(',')[0]")


def settle(browser: Browser) -> None:
    browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_the_bundle_is_made_of_the_sources():
    digest = hashlib.sha256()
    sources = ROOT / "view_app"
    for path in sorted((sources / "src").iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    digest.update((sources / "package.json").read_bytes())
    told = re.search(r"sources sha256:(\w+)", script())
    assert told and told[1] == digest.hexdigest(), "view_app has changed: make view-bundle"
    assert "Permission is hereby granted" in script() and "Chris Pettitt" in script()
    assert "</script" not in script() and script().isascii()


def test_the_lock_file_names_no_registry():
    text = (ROOT / "view_app" / "package-lock.json").read_text()
    assert "resolved" not in text and "http" not in re.sub(r'"(url|funding)": "[^"]*"', "", text)


def test_embedded_data_cannot_end_its_element():
    text = embedded({HOSTILE: [HOSTILE]})
    assert json.loads(text) == {HOSTILE: [HOSTILE]}
    assert not set("<>&") & set(text) and text.isascii()


def test_a_notebook_shows_a_frame_of_its_own():
    captured = captured_model(depth=2)
    for one in (captured, captured.graph, clew.view(captured), clew.diff(captured, captured)):
        text = one._repr_html_()
        assert text.startswith('<iframe title="Graph of Model" sandbox="allow-scripts" style=') and text.count("<") == 2
        assert html.unescape(text).count("<!doctype html>") == 1
    assert len(large_graph(50, 80)._repr_html_()) < 3_000_000


def test_a_page_has_the_ending_of_a_page(tmp_path):
    captured = captured_model()
    with pytest.raises(clew.ClewError, match="clew.to_svg"):
        captured.view(tmp_path / "model.png")
    assert not list(tmp_path.iterdir())


def test_a_view_is_saved_and_named(tmp_path):
    captured = captured_model(depth=2)
    found = captured.view(tmp_path / "view.html")
    assert (tmp_path / "view.html").read_text() == found.html and "19 steps" in repr(found)
    with pytest.raises(clew.ClewError, match="profile= takes what clew.profile returns, not a str"):
        captured.view(profile="yes")


@needs_browser
def test_boxes_open_and_close_by_click_and_by_key(shown):
    browser = shown(captured_model(depth=4))
    assert {"x", "y", "blocks.0"} <= set(cards(browser)) and "blocks_0_first" not in cards(browser)
    assert "×4" in browser.run("document.querySelector('.count-text').textContent")
    browser.click(*place(browser, "blocks.0"))
    settle(browser)
    assert "blocks_0_first" in cards(browser) and selected(browser) == "blocks.0"
    assert browser.run("document.querySelector('.copies text').textContent") == "1 of 4"
    browser.press("]")
    settle(browser)
    assert "blocks_1_first" in cards(browser) and "blocks_0_first" not in cards(browser)
    browser.press("Enter")
    settle(browser)
    assert "blocks_1_first" not in cards(browser)
    browser.press("u")
    settle(browser)
    assert [name for name in cards(browser) if name.startswith("blocks.")] == [f"blocks.{n}" for n in range(4)]
    browser.press("u")
    settle(browser)
    assert len([name for name in cards(browser) if name.startswith("blocks.")]) == 1


@needs_browser
def test_arrow_keys_follow_values_and_the_panel_tells_all(shown):
    captured = captured_model(depth=2)
    browser = shown(captured)
    browser.click(*place(browser, "y"))
    settle(browser)
    panel = browser.run("document.querySelector('.panel').innerText")
    assert "f32[2, 8]" in panel and "64 B" in panel and "programs.py:" in panel and "y = self.inward(x)" in panel
    assert "in_features=3, out_features=8" in panel and "32" in panel and "MODULE CALL" in panel.upper()
    browser.press("ArrowUp")
    settle(browser)
    assert selected(browser) == "x"
    assert "type(x) is Tensor" in browser.run("document.querySelector('.panel').innerText")
    browser.press("ArrowDown")
    settle(browser)
    assert selected(browser) == "y"
    assert browser.run("document.activeElement.getAttribute('aria-label').split(',')[0]") == "y"
    browser.run(
        "[...document.querySelectorAll('.panel .link')]"
        ".find((one) => one.textContent.includes('blocks_0_first')).click()"
    )
    settle(browser)
    assert selected(browser) == "blocks_0_first"
    crumbs = browser.run("[...document.querySelectorAll('.crumb')].map((one) => one.textContent)")
    assert crumbs == ["Model", "blocks.0", "blocks_0_first"]


@needs_browser
def test_the_tab_key_leads_to_the_graph(shown):
    browser = shown(captured_model(depth=2))
    seen = []
    for _ in range(30):
        browser.press("Tab")
        seen.append(browser.run("document.activeElement.getAttribute('class') || document.activeElement.tagName"))
        if "card" in seen[-1]:
            break
    assert {"skip", "INPUT", "tool"} <= {word for one in seen for word in one.split()}
    assert any("row" in one for one in seen) and selected(browser) == "x"
    browser.press("ArrowDown")
    settle(browser)
    assert selected(browser) == "y"


@needs_browser
def test_search_finds_what_is_folded_away_and_jumps_there(shown):
    browser = shown(captured_model(depth=4))
    browser.press("/")
    browser.write("blocks_2_act")
    settle(browser)
    assert browser.run("document.querySelectorAll('.found [role=option]').length") == 1
    browser.press("Enter")
    settle(browser)
    assert selected(browser) == "blocks_2_act"
    browser.press("/")
    browser.write("nothing of the kind")
    settle(browser)
    assert browser.run("document.querySelector('.found').innerText") == "Nothing found"


@needs_browser
def test_the_outline_is_a_tree_for_keys_and_screen_readers(shown):
    browser = shown(captured_model(depth=2))
    browser.run("document.querySelector('.tree [tabindex=\"0\"]').focus()")
    rows = "[...document.querySelectorAll('[role=treeitem]')].map((one) => one.getAttribute('aria-label'))"
    assert browser.run(rows)[2] == "blocks.0, Block, module, 2 equal blocks, 4 steps"
    browser.press("ArrowDown")
    browser.press("ArrowDown")
    browser.press("ArrowRight")
    settle(browser)
    assert browser.run("document.activeElement.getAttribute('aria-expanded')") == "true"
    assert "blocks_0_first, Linear, Linear, convolution, matmul, gives f32[2, 16]" in browser.run(rows)
    browser.press("ArrowDown")
    browser.press("Enter")
    settle(browser)
    assert selected(browser) == "blocks_0_first"
    assert browser.run(
        "[...document.querySelectorAll('button, input, select')]"
        ".every((one) => one.getAttribute('aria-label') || one.textContent)"
    )
    assert browser.run("document.documentElement.lang") == "en"


@needs_browser
def test_light_dark_and_the_users_wish(shown):
    browser = shown(captured_model(depth=2))
    background = "getComputedStyle(document.body).backgroundColor"
    light = browser.run(background)
    browser.media(prefers_color_scheme="dark")
    dark = browser.run(background)
    browser.press("t")
    assert dark != light and browser.run(background) == light
    browser.media()
    browser.press("t")
    assert browser.run(background) == dark


@needs_browser
def test_zoom_pan_fit_and_small_steps(shown):
    browser = shown(captured_model(depth=2))
    view = "[clewApp.current.view.x, clewApp.current.view.y, clewApp.current.view.k]"
    x, y, k = browser.run(view)
    browser.press("+")
    assert browser.run(view)[2] > k
    browser.press("f")
    assert browser.run(view) == [x, y, k]
    browser.press("ArrowRight", shift=True)
    assert browser.run(view) == [x - 80, y, k]
    assert "x_dim0" not in cards(browser)
    browser.press("s")
    settle(browser)
    assert "x_dim0" in cards(browser)


@needs_browser
def test_control_flow_is_nested_boxes(shown):
    browser = shown(captured_deciding())
    browser.press("e")
    browser.press("f")
    settle(browser)
    names = cards(browser)
    assert {"if y.sum() > 0", "if true", "if false", "while", "body"} <= set(names)


@needs_browser
def test_a_profile_gives_colours_and_figures(shown):
    captured = captured_model(depth=2)
    browser = shown(captured, profile=clew.profile(captured, torch.randn(2, 3)))
    assert browser.run("document.querySelector('select').value") == "seconds"
    options = browser.run("[...document.querySelectorAll('option')].map((one) => one.value)")
    assert options == ["family", "seconds", "flops", "memory", "bytes", "parameters"]
    browser.run("clewApp.colourBy('flops')")
    settle(browser)
    label = browser.run("[...document.querySelectorAll('.card')].map((one) => one.getAttribute('aria-label'))")
    assert any("FLOPs · " in one for one in label)
    assert browser.run("Boolean(document.querySelector('.heat .share'))")


@needs_browser
def test_arithmetic_is_a_colour_without_a_profile(shown):
    browser = shown(captured_model(depth=2))
    options = browser.run("[...document.querySelectorAll('option')].map((one) => one.text)")
    assert options == ["by kind", "by FLOPs", "by parameters"]
    assert "FLOPs, at the example's sizes" in browser.run("document.querySelector('.facts').textContent")
    browser.run("clewApp.colourBy('flops')")
    settle(browser)
    assert browser.run("Boolean(document.querySelector('.heat .share'))")


@needs_browser
def test_before_and_after_stand_side_by_side_with_marks(shown):
    before = captured_model(depth=2)
    after = captured_model(depth=2)
    graph = after.graph
    node = next(one for one in graph.nodes if one.name == "blocks_0_act")
    with graph.inserting_after(node):
        extra = graph.call_function(torch.neg, (node,))
    node.replace_all_uses_with(extra, lambda user: user is not extra)
    browser = shown(after, before=before)
    assert browser.run("document.querySelectorAll('.stage').length") == 2
    assert browser.run(
        "[...document.querySelectorAll('.card.added')].map((one) => one.getAttribute('aria-label').split(',')[0])"
    ) == ["neg"]
    assert browser.run("document.querySelectorAll('.card.edited').length") == 2  # of the user, before and after
    browser.run("document.querySelector('.change.added button').click()")
    settle(browser)
    assert selected(browser) == "neg"


@needs_browser
def test_no_name_is_read_as_markup_or_code(shown):
    browser = shown(hostile_graph(HOSTILE))
    browser.press("e")
    browser.press("/")
    browser.write("script")
    settle(browser)
    browser.press("Enter")
    settle(browser)
    assert browser.run("window.hacked") is None
    assert browser.run("document.querySelectorAll('img, body script').length") == 2  # ours
    panel = browser.run("document.querySelector('.panel').textContent")
    assert "<img src=x onerror=window.hacked=1>" in panel and "</script><script>" in panel


PAN = """new Promise((done) => {
  const times = [];
  let last = performance.now();
  const step = (now) => {
    times.push(now - last);
    last = now;
    clewApp.current.pan(0, -40);
    if (times.length < 60) requestAnimationFrame(step);
    else done(times.slice(1).sort((a, b) => a - b));
  };
  requestAnimationFrame(step);
})"""


@needs_browser
def test_ten_thousand_nodes_open_fast_and_stay_smooth(shown):
    browser = shown(large_graph(100, 100))
    assert browser.run("clewApp.current.model.parts.filter((part) => !part.box).length") == 10_002
    browser.wait("performance.getEntriesByName('first-contentful-paint').length")
    paint = browser.run("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    ready = browser.run("performance.getEntriesByName('clew-ready')[0].startTime")
    browser.run("clewApp.openAll(clewApp.current, clewApp.current.model.root)")
    browser.run("clewApp.current.view.k = 0.6, clewApp.current.draw()")
    times = browser.run(PAN)
    middle = times[len(times) // 2]
    print(f"first paint {paint:.0f} ms, ready {ready:.0f} ms, frames {middle:.1f} ms, slowest {times[-1]:.1f} ms")
    assert paint < 2000 and ready < 2000 and middle < 34
    assert browser.run("clewApp.current.drawn.length") > 1000
    assert browser.run("document.querySelectorAll('.card').length") < 400
