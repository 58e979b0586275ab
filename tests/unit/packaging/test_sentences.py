"""The inventory of sentences is current, and product and documents avoid the wordings that were replaced."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
sentences = import_module("sentences")
documents, page, python, rules, rust = (
    import_module(f"prose.{name}") for name in ("documents", "page", "python", "rules", "rust")
)


def test_the_inventory_is_current() -> None:
    written = set(sentences.FILE.read_text().splitlines())
    found = set(sentences.inventory().splitlines())
    changed = [f"- {line}" for line in sorted(written - found)] + [f"+ {line}" for line in sorted(found - written)]
    assert not changed, f"sentences changed; run {sentences.COMMAND}\n" + "\n".join(changed)


def test_sentences_and_documents_keep_to_the_rules() -> None:
    wrong = list(sentences.findings())
    assert not wrong, f"{len(wrong)} sentences to reword; {sentences.COMMAND} --check lists them\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "the node said no",
        "Receivers are told of alarms.",
        "What a site lost is sent again.",
        "It is late. Whoever waits hears of it.",
        "two of them start at once",
        "Kubernetes, for one, may refuse",
        "It is a fault, what is none is passed over",
        "Sign in at hub",
        "NGRID, multicast is favoured in 1 of 3",
    ],
)
def test_wordings_that_were_replaced_are_found(text: str) -> None:
    assert list(rules.broken(text))


@pytest.mark.parametrize(
    "text",
    ["What is a feed?", "Who may sign in? Users.", "A log is for one feed.", "Sites that wait are whole again."],
)
def test_other_wordings_pass(text: str) -> None:
    assert not list(rules.broken(text))


def test_phrases_are_found_across_lines_of_comments() -> None:
    assert list(rules.phrases("    /// Gives no sequence up\n    /// to this one any more.\n"))


def test_what_python_shows_is_found(tmp_path: Path) -> None:
    text = '''\
"""A module of the tests."""
KEYS = ["feed site", "SELECT name FROM feeds WHERE name = 1", "one"]


@app.command("list")
def show(name):
    """List the feeds."""
    LOG.warning("the disk of %s is full", name)
    LOG.info("the disk is looked at")
    raise BadInput(f"there is no feed {name}; "
                   "create one")
'''
    assert dict(_found(python, tmp_path, "app/downburst_app/cli/shown.py", text)) == {
        "feed site": "command line",
        "List the feeds.": "command line",
        "the disk of %s is full": "log",
        "there is no feed {…}; create one": "command line",
    }


def test_what_rust_shows_is_found(tmp_path: Path) -> None:
    text = r"""
//! Says nothing.
#[derive(clap::Args)]
struct Arguments {
    /// Number of sites
    /// to serve.
    sites: u32,
}
/// A note for developers.
struct Other;
#[error("the file {path:?} can't be read; \
         check it")]
fn run() {
    tracing::warn!(count, "products are lost");
    tracing::info!("a site is connected");
    assert!(found, "a thing of tests");
    let (quote, life): (char, &'static str) = ('"', r#"a raw "text" here"#);
}
#[cfg(test)]
mod tests {
    fn is_skipped() { fail("in a test module") }
}
"""
    assert dict(_found(rust, tmp_path, "workers/crates/x/src/shown.rs", text)) == {
        "Number of sites to serve.": "help of the node",
        "the file {…} can't be read; check it": "node",
        "products are lost": "log",
        'a raw "text" here': "node",
    }


def test_what_the_page_shows_is_found(tmp_path: Path) -> None:
    text = """\
<script lang="ts">
  import { call } from '../a file'
  const problem = $state(`no answer of ${site.name} yet`) // a comment's text
</script>
<h2 class="big and bold" title="All sites">Sites of <em>{hub}</em></h2>
{#if count > 2}<p>Too many</p>{:else}<Known label="known to it" kind={open ? 'is open now' : ''} />{/if}
<style> p { margin: 0 auto } </style>
"""
    assert {text for text, _ in _found(page, tmp_path, "services/dashboard/src/Shown.svelte", text)} == {
        "no answer of {…} yet",
        "All sites",
        "Sites of {…}",
        "Too many",
        "known to it",
        "is open now",
    }


def test_documents_are_read_without_commands_and_code(tmp_path: Path) -> None:
    text = """\
# A title

A line with `code that said` and
a [link](said.md).

```sh
echo said
```

```text
the hub answers
```
"""
    assert [text for text, _ in _found(documents, tmp_path, "guide.md", text)] == [
        "A title",
        "A line with {…} and a [link].",
        "the hub answers",
    ]


def _found(reader: ModuleType, root: Path, name: str, text: str) -> Iterator[tuple[str, str]]:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)
    if reader is python:
        commands = root / "app/downburst_app/cli/__init__.py"
        commands.parent.mkdir(parents=True, exist_ok=True)
        commands.write_text('COMMANDS = {"list": ("lists:app", "List.")}\n')
    for one in reader.sentences(root, [name]):
        yield one.text, one.area
