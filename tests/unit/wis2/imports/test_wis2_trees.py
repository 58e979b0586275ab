"""YAML and JSON keep their lines, and broken, deep or large ones are one sentence."""

import pytest

from downburst.foundation.errors import BadInput
from downburst.wis2.imports.files import LARGEST_FILE_BYTES, ConfigFile, config_file
from downburst.wis2.imports.kinds import Kind, is_environment_file, kind_of
from downburst.wis2.imports.tree import Table, leaves, read_tree


def listed(text: str) -> list[tuple[str, int, str | None]]:
    return [(path, leaf.line, leaf.text) for path, leaf in leaves(read_tree(ConfigFile("a", text)))]


def test_values_keep_their_lines_and_their_text() -> None:
    assert listed("a:\n  b: 2024-02-09\n  c: [1.0, yes]\nd: null\n") == [
        ("a.b", 2, "2024-02-09"),
        ("a.c", 3, "1.0"),
        ("a.c", 3, "yes"),
        ("d", 4, None),
    ]


def test_json_with_tabs_and_escapes_is_read() -> None:
    assert listed('{\n\t"a":\t"b\\/\\u00e4",\n\t"c": {"d":1},\n\t"e": "\\ud800"\n}') == [
        ("a", 2, "b/ä"),
        ("c.d", 3, "1"),
        ("e", 4, "\ufffd"),
    ]


def test_of_a_key_that_stands_twice_the_last_one_counts() -> None:
    tree = read_tree(ConfigFile("a", "a: 1\nb: 2\na: 3\n"))
    assert isinstance(tree, Table)
    assert tree.text("a") == "3"
    assert [(one.key, one.line) for one in tree.repeated] == [("a", 1)]


def test_merged_tables_give_what_the_own_one_does_not() -> None:
    tree = read_tree(ConfigFile("a", "x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  b: 3\n"))
    assert isinstance(tree, Table)
    assert (tree.text("y", "a"), tree.text("y", "b")) == ("1", "3")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\nb: [", "a.yml:2: this is not YAML"),
        ("a: *unknown", "a.yml:1: this is not YAML: found undefined alias; correct the line"),
        ("a: 1\n- b", "a.yml:2: this is not YAML"),
        ("[centre_id].data.core.weather: 1", "a.yml:1: this is not JSON"),
        ('{"a": 1,\n "b": }', "a.yml:2: this is not JSON"),
        ("a: b\x07", "a.yml is not YAML: it holds a character"),
        ("[" * 100 + "]" * 100, "a.yml has values nested in more than 32 levels"),
        ("[" * 100_000, "a.yml has values nested in more than 32 levels"),
        ("a: " * 1, ""),
        ("--- a\n--- b", "a.yml:2: this is not YAML"),
        ("\n".join(f"a{one}: 1" for one in range(25_000)), "there are more than 20000 values"),
    ],
)
def test_what_can_not_be_read_is_one_sentence(text: str, sentence: str) -> None:
    if not sentence:
        assert listed(text) == [("a", 1, None)]
        return
    with pytest.raises(BadInput) as error:
        read_tree(ConfigFile("a.yml", text))
    assert sentence in error.value.sentence


def test_aliases_count_as_often_as_they_are_used() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{one}: &a{one} [{', '.join([f'*a{one - 1}'] * 10)}]" for one in range(1, 9)]
    with pytest.raises(BadInput, match="more than 20000 values"):
        read_tree(ConfigFile("a.yml", "\n".join(lines)))


def test_an_alias_of_what_holds_it_is_too_deep() -> None:
    for text in ("a: &a [*a]", "&a {a: *a}", "a: &a\n  <<: *a\n"):
        with pytest.raises(BadInput, match="nested in more than 32 levels"):
            read_tree(ConfigFile("a.yml", text))


def test_a_file_is_text_of_a_bounded_size() -> None:
    for content, part in (
        (b"a" * (LARGEST_FILE_BYTES + 1), "at most 256 KiB"),
        (b"A=1\nB=\xff", "a:2: the text is not UTF-8"),
        (b"A=\0", "no text file"),
    ):
        with pytest.raises(BadInput, match=part):
            config_file("a", content)
    assert config_file("a", b"\xef\xbb\xbfA=1\r\nB=2").text == "A=1\nB=2"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"broker_hostname": "a", "download_dir": "b"}', Kind.DOWNLOADER),
        ('{"broker_url": "a", "download_workers": 1}', Kind.DOWNLOADER),
        ('{"topics": {}, "client_id": "a"}', Kind.DOWNLOADER),
        ('{"cache/a/wis2/#": {"1f": {"save_path": "a"}}}', Kind.SUBSCRIPTIONS),
        ('{"1f": {"topic": "cache/a/wis2/#"}}', Kind.SUBSCRIPTIONS),
        ('{"id": "1f", "topic": "cache/a/wis2/#"}', Kind.SUBSCRIPTIONS),
        ('[{"topic": "cache/a/wis2/#"}]', Kind.SUBSCRIPTIONS),
        ("broker: mqtt://a\nsubscribe_topics: []", Kind.PYWIS),
        ("broker: mqtt://a\ntopics: []\nstorage: {type: fs}", Kind.PYWIS),
        ("services: {a: {image: b}}", Kind.COMPOSE),
        ("mcf: {version: 1.0}\nwis2box: {}", Kind.DATASET),
        ("data: {a.data.core: {plugins: {}}}", Kind.MAPPINGS),
        ("global: {roles: SUBSCRIBER}", None),
        ("{}", None),
        ("[]", None),
        ("text", None),
        ("", None),
    ],
)
def test_the_content_tells_the_kind(text: str, kind: Kind | None) -> None:
    file = ConfigFile("a", text)
    assert not is_environment_file(file)
    if kind is not None:
        assert kind_of(file, read_tree(file)) is kind
        return
    with pytest.raises(BadInput, match="no configuration of wis2box"):
        kind_of(file, read_tree(file))
