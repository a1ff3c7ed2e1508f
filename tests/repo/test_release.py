"""The words of README, the changelog, the metadata and the pinned actions that `make release` needs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.support import tree
from tests.tools import release

README = tree.ROOT / "README.md"
WORKFLOWS = sorted((tree.ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONS = {  # action -> version and the commit of that tag; look both up before you change one
    "actions/checkout": ("v7.0.1", "3d3c42e5aac5ba805825da76410c181273ba90b1"),
    "actions/setup-python": ("v7.0.0", "5fda3b95a4ea91299a34e894583c3862153e4b97"),
    "actions/upload-artifact": ("v7.0.0", "bbbca2ddaa5d8feaa63e36b76fdaad77386f024f"),
    "actions/download-artifact": ("v8.0.1", "3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c"),
    "actions/attest-build-provenance": ("v4.1.0", "a2bbfa25375fe432b6a289bc6b6cd05ecd0c4c32"),
    "pypa/gh-action-pypi-publish": ("v1.14.0", "cef221092ed1bacb1cc03d23a2d87d1d172e277b"),
}
USES = re.compile(r"uses: ([\w/.-]+)@(\S+)(?: # (\S+))?")


def _project(folder: Path) -> dict[str, object]:
    found: dict[str, object] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def test_readme_begins_with_the_commands_that_work_today() -> None:
    made = release.settings()
    words = made["words"]["index" if made["published"] else "clone"]
    text = README.read_text(encoding="utf-8")

    assert text == release.readme_with(text, words), "README.md: between the marks are the words of release.toml"


def test_the_extra_all_names_every_distribution() -> None:
    named = {re.split(r"[<>=]", need)[0] for need in _project(tree.ROOT / "core")["optional-dependencies"]["all"]}  # type: ignore[index]

    assert named == {str(_project(folder)["name"]) for folder in tree.DISTRIBUTIONS} - {"interlingua"}


def test_all_distributions_have_one_version() -> None:
    assert len({_project(folder)["version"] for folder in tree.DISTRIBUTIONS}) == 1


@pytest.mark.parametrize("folder", tree.DISTRIBUTIONS, ids=lambda folder: folder.name)
def test_a_readme_links_to_files_that_exist_and_to_the_tag_in_a_release(folder: Path) -> None:
    text = release.absolute(folder / "README.md", tree.ROOT, "1.2.3", "https://example.invalid/x")

    links = re.findall(r"\]\((?!#)([^)#\s]+)", text)
    assert all(re.match(r"\w+:", link) for link in links)
    ours = [link.partition("/blob/v1.2.3/")[2] for link in links if link.startswith("https://example.invalid/x/")]
    assert not [target for target in ours if not (tree.ROOT / target).exists()]


def test_preparing_a_copy_sets_version_bounds_metadata_and_words(tmp_path: Path) -> None:
    for path in tree.tracked():
        name = path.relative_to(tree.ROOT)
        if name.name in ("pyproject.toml", "README.md", "LICENSE", "release.toml"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(path.read_bytes())

    release.prepare(tmp_path, "1.4.0", "https://example.invalid/x")

    for folder in release.distributions(tmp_path):
        about = _project(folder)
        assert about["version"] == "1.4.0"
        assert about["urls"]["Source"] == "https://example.invalid/x"  # type: ignore[index]
        assert "Typing :: Typed" in about["classifiers"]  # type: ignore[operator]
        own = [need for need in about["dependencies"] if need.startswith("interlingua")]  # type: ignore[attr-defined]
        assert all(need.endswith(">=1.4,<2.0") for need in own)
        assert (folder / "LICENSE").is_file()
    assert release.settings(tmp_path)["published"] is True
    assert "pip install interlingua interlingua-anthropic" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_notes_are_the_section_of_the_version() -> None:
    changelog = "# Changelog\n\n## [0.2.0]\n\n- New.\n\n## [0.1.0] First release\n\nNot published yet.\n\n- Old.\n"

    assert release.notes(changelog, "0.2.0") == "- New.\n"
    assert release.notes(changelog, "0.1.0") == "- Old.\n"
    with pytest.raises(SystemExit, match=r"no section \[0\.3\.0\]"):
        release.notes(changelog, "0.3.0")


def test_todays_version_is_in_the_changelog() -> None:
    version = str(_project(tree.ROOT / "core")["version"])

    assert release.notes((tree.ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)


@pytest.mark.parametrize("page", WORKFLOWS, ids=lambda page: page.name)
def test_every_action_is_pinned_by_the_commit_of_its_version(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = USES.findall(text)

    assert len(found) == text.count("uses:")
    for name, commit, version in found:
        assert (version, commit) == ACTIONS.get(name), f"{name}: pin it by the 40 digits of its tag's commit"


def test_only_the_job_that_uploads_may_and_no_secret_is_used() -> None:
    text = (tree.ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]

    assert "secrets." not in text
    assert jobs["publish"]["environment"] == "pypi"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert not [step for step in jobs["build"]["steps"] if "pypi-publish" in step.get("uses", "")]
