"""The shape of the code does not get worse: files, functions, structs, folders and circles of imports."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
LIMITS = json.loads((ROOT / "tests" / "golden" / "shape.json").read_text())


@pytest.fixture(scope="module")
def counted() -> Any:
    done = subprocess.run(
        [sys.executable, "scripts/shape.py", "--json"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(("language", "figure"), [(name, one) for name, limits in LIMITS.items() for one in limits])
def test_no_figure_of_the_shape_is_above_its_limit(counted: Any, language: str, figure: str) -> None:
    found, limit = counted[language][figure], LIMITS[language][figure]
    hint = f"`scripts/shape.py --worst 10` names them; lower {figure!r} in tests/golden/shape.json when it falls"
    assert found <= limit, f"{language}: {figure} is {found}, at most {limit}: {hint}"


def test_planted_code_is_counted(tmp_path: Path) -> None:
    """Comments, strings, Rust tests and test files are not counted; a circle of two modules is found."""
    sources = tmp_path / "workers" / "crates" / "planted" / "src"
    sources.mkdir(parents=True)
    (sources / "a.rs").write_text(
        "use crate::b::{One, Two};\n\n"
        "pub struct Wide {\n    one: u8,\n    /// two: u8,\n    pub(crate) three: u8,\n}\n\n"
        'fn braces() {\n    let _ = "{{{";\n    // }\n}\n\n#[cfg(test)]\nmod tests {\n    fn not_counted() {}\n}\n'
    )
    (sources / "b.rs").write_text("use super::a;\n\npub(crate) struct One;\n\n#[cfg(test)]\nmod model;\n")
    (sources / "b").mkdir()
    (sources / "b" / "model.rs").write_text("fn not_counted() {}\n")
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import shape\n"
        "shape.ROOT = Path(sys.argv[2]); shape.CRATES = shape.ROOT / 'workers' / 'crates'\n"
        "import json; print(json.dumps(shape.counts(shape.rust_sources(), '::')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(ROOT / "scripts"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert (found["files"], found["functions"], found["longest function"]) == (2, 1, 4)
    assert (found["most fields of a struct or class"], found["modules of the largest circle"]) == (2, 2)
