"""Build a release: `make release VERSION=0.1.0 REPOSITORY=https://…` writes sdists, wheels, notes, SBOM and checksums.

Everything is built twice from copies of the last commit, the second time each wheel from its sdist, and must be equal
byte for byte. Nothing is uploaded: `.github/workflows/release.yml` does that with the files of `dist/`.
"""

from __future__ import annotations

import argparse
import email
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.tools import venv

ROOT = venv.ROOT
VENV = ROOT / ".venv-release"
SETTINGS = Path(__file__).with_name("release.toml")
README_PART = re.compile(r"(<!-- install -->\n).*?(<!-- /install -->)", re.DOTALL)
NO_ADDRESS = "https://example.invalid/interlingua"
_LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)")
_OWN = re.compile(r'("interlingua[\w-]*(?:\[[\w,]+\])?)>=\d+\.\d+,<\d+\.\d+(?=")')


def settings(folder: Path = ROOT) -> dict[str, Any]:
    """Return release.toml of a tree."""
    return tomllib.loads((folder / SETTINGS.relative_to(ROOT)).read_text(encoding="utf-8"))


def distributions(folder: Path) -> list[Path]:
    """Return the folders of the distributions of a tree."""
    return [folder / "core", *sorted(path.parent for path in folder.glob("plugins/*/pyproject.toml"))]


def readme_with(text: str, words: str) -> str:
    """Return a README with the first commands put in."""
    return README_PART.sub(lambda part: f"{part[1]}{words}{part[2]}", text)


def prepare(folder: Path, version: str, address: str) -> None:
    """Give a copy of the tree its version, its metadata, and the words of a published project."""
    made = settings(folder)
    major, minor, *_ = (int(part) for part in version.split("."))
    bound = rf"\1>={major}.{minor},<" + (f"0.{minor + 1}" if major == 0 else f"{major + 1}.0")
    for one in distributions(folder):
        page = one / "pyproject.toml"
        text = re.sub(
            r'^version = ".*"$', f'version = "{version}"', page.read_text(encoding="utf-8"), flags=re.MULTILINE
        )
        text = _OWN.sub(bound, text)
        page.write_text(text.replace('\nlicense = "', f'\n{metadata(made, version, address)}\nlicense = "', 1))
        shutil.copy(folder / "LICENSE", one)
        readme = one / "README.md"
        readme.write_text(absolute(readme, folder, version, address), encoding="utf-8")
    home = folder / "README.md"
    home.write_text(readme_with(home.read_text(encoding="utf-8"), made["words"]["index"]), encoding="utf-8")
    switch = folder / SETTINGS.relative_to(ROOT)
    switch.write_text(switch.read_text(encoding="utf-8").replace("published = false", "published = true", 1))


def metadata(made: dict[str, Any], version: str, address: str) -> str:
    """Return the lines of [project] that all distributions share."""
    shared = made["metadata"]
    urls = {name: url.format(address, version) for name, url in shared["urls"].items()}
    lines = [f"{name} = {json.dumps(shared[name])}" for name in ("keywords", "classifiers")]
    people = ", ".join(
        "{ " + ", ".join(f"{k} = {json.dumps(v)}" for k, v in one.items()) + " }" for one in shared["authors"]
    )
    lines += [f"authors = [{people}]", 'license-files = ["LICENSE"]']
    lines += ["urls = { " + ", ".join(f"{name} = {json.dumps(url)}" for name, url in urls.items()) + " }"]
    return "\n".join(lines)


def absolute(readme: Path, folder: Path, version: str, address: str) -> str:
    """Return a README whose links to files of the repository lead to the tag: an index shows it without its folder."""

    def lead(link: re.Match[str]) -> str:
        target = (readme.parent / link[2]).resolve().relative_to(folder.resolve()).as_posix()
        return f"{link[1]}{address}/blob/v{version}/{target}"

    return _LINK.sub(lead, readme.read_text(encoding="utf-8"))


def notes(changelog: str, version: str) -> str:
    """Return the changelog's section of a version, without its heading.

    Raises:
        SystemExit: the changelog has no such section.
    """
    found = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## \[|\Z)", changelog, re.MULTILINE | re.DOTALL)
    if not found:
        sys.exit(f"CHANGELOG.md has no section [{version}]: write what is new, then release")
    return found[1].replace("Not published yet.\n", "").strip() + "\n"


def make_venv() -> Path:
    """Make .venv-release, which holds what builds and checks and nothing of the workspace; return its Python."""
    venv.make_venv()
    venv.installer()
    python = VENV / "bin" / "python"
    if not python.exists():
        venv.run(sys.executable, "-m", "venv", VENV)
    needed = venv.requirements("release")
    install = [venv.UV, "pip", "install", "--quiet", "--python", python, "-c", venv.HASHES]
    venv.run(*install, *needed, env=venv.uv_environment())
    return python


def copy_of_commit(into: Path) -> Path:
    """Unpack the last commit: what is not committed is not released."""
    into.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=into, input=archive, check=True)
    return into


def build(python: Path, folder: Path, out: Path, epoch: str, *targets: str) -> None:
    """Build one folder with hatchling, its times set to the commit's."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": epoch, "PYTHONDONTWRITEBYTECODE": "1"}
    kinds = [part for target in targets for part in ("-t", target)]
    venv_run = [str(python), "-m", "hatchling", "build", "-d", str(out), *kinds]
    done = subprocess.run(venv_run, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{folder.name} does not build:\n{done.stdout}{done.stderr}")


def build_twice(python: Path, work: Path, version: str, address: str) -> Path:
    """Build everything in two folders and return the first, equal to the second byte for byte."""
    epoch = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True)
    outs = []
    for name in ("first", "second/deeper"):
        copy = copy_of_commit(work / name / "tree")
        prepare(copy, version, address)
        outs.append(work / name / "dist")
        for one in distributions(copy):
            build(python, one, outs[-1], epoch.stdout.strip(), *(("sdist", "wheel") if name == "first" else ("sdist",)))
    for sdist in sorted(outs[1].glob("*.tar.gz")):  # the second wheel is made of the sdist alone
        with tarfile.open(sdist) as archive:
            archive.extractall(work / "unpacked", filter="data")
        build(python, work / "unpacked" / sdist.name.removesuffix(".tar.gz"), outs[1], epoch.stdout.strip(), "wheel")
    sums = [{path.name: digest(path) for path in sorted(out.iterdir())} for out in outs]
    differ = sorted(name for name in {*sums[0], *sums[1]} if sums[0].get(name) != sums[1].get(name))
    if differ:
        sys.exit(f"two builds differ in {', '.join(differ)}")
    print(f"{len(sums[0])} files, equal in two builds", flush=True)
    return outs[0]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def faults(path: Path, version: str) -> Iterator[str]:
    """Yield what is wrong with the metadata of a wheel or an sdist. Runs in .venv-release."""
    from packaging.metadata import Metadata
    from readme_renderer import markdown
    from trove_classifiers import classifiers

    names, raw = _contents(path)
    try:
        about = Metadata.from_email(raw, validate=True)
    except ExceptionGroup as group:
        yield from (f"{path.name}: {error}" for error in group.exceptions)
        return
    head = email.message_from_bytes(raw)
    if str(about.version) != version:
        yield f"{path.name}: is version {about.version}"
    if about.license_expression != "Apache-2.0" or not any(name.endswith("LICENSE") for name in names):
        yield f"{path.name}: needs the licence, as an expression and as a file"
    yield from (f"{path.name}: no classifier {one!r}" for one in about.classifiers or [] if one not in classifiers)
    if "Typing :: Typed" not in (about.classifiers or []):
        yield f"{path.name}: has no classifiers"
    yield from (
        f"{path.name}: no link {one}" for one in ("Source", "Changelog") if one not in (about.project_urls or {})
    )
    text = str(about.description or head.get_payload())
    if about.description_content_type != "text/markdown" or not markdown.render(text):
        yield f"{path.name}: its README does not render"
    yield from (f"{path.name}: README links to {link[1]}, nowhere on an index" for link in _LINK.findall(text))
    major, minor = version.split(".")[:2]
    for need in about.requires_dist or []:
        if need.name.startswith("interlingua") and f">={major}.{minor}" not in str(need.specifier):
            yield f"{path.name}: {need} is not bound to {major}.{minor}"


def _contents(path: Path) -> tuple[list[str], bytes]:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
            return names, wheel.read(next(name for name in names if name.endswith(".dist-info/METADATA")))
    with tarfile.open(path) as sdist:
        names = sdist.getnames()
        found = sdist.extractfile(next(name for name in names if name.count("/") == 1 and name.endswith("/PKG-INFO")))
        assert found is not None
        return names, found.read()


def check(python: Path, dist: Path, version: str) -> None:
    """Stop with every fault of the files' metadata."""
    done = subprocess.run(
        [str(python), "-m", "tests.tools.release", "--faults", str(dist), "--version", version],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    print("licence, links, classifiers, README and bounds are as they should be", flush=True)


def write_index(dist: Path, into: Path) -> None:
    """Write a simple index of the wheels, as pip and uv read one, with a page for each name."""
    for wheel in sorted(dist.glob("*.whl")):
        page = into / wheel.name.partition("-")[0].replace("_", "-") / "index.html"
        page.parent.mkdir(parents=True)
        page.write_text(f'<!DOCTYPE html><a href="{wheel.as_uri()}#sha256={digest(wheel)}">{wheel.name}</a>\n')


def commands(words: str) -> list[str]:
    """Return the commands of README's first block, without their comments."""
    block = re.search(r"```sh\n(.*?)```", words, re.DOTALL)
    assert block
    return [line.partition("   #")[0].rstrip() for line in block[1].splitlines()]


def try_out(work: Path, dist: Path, version: str) -> Path:
    """Run README's first commands in an empty folder, against a local index of the wheels; return its Python."""
    write_index(dist, work / "simple")
    place = work / "user"
    venv.run(sys.executable, "-m", "venv", place / "venv")
    pins = place / "pins.txt"  # a file of this name on another index has another version
    names = [path.name for path in (work / "simple").iterdir()]
    own = [f"{name}=={version}\n" for name in names]
    pins.write_text("".join(own) + venv.CONSTRAINTS.read_text(encoding="utf-8"))
    pip = venv.pip_settings()
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "INTERLINGUA_", "VIRTUAL"))
    }
    env |= {
        "PATH": f"{place / 'venv' / 'bin'}{os.pathsep}{env['PATH']}",
        "PIP_EXTRA_INDEX_URL": f"{(work / 'simple').as_uri()} {pip.get('extra-index-url', '')}".strip(),
        "PIP_CONSTRAINT": str(pins),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "HOME": str(place),
    }
    for command in [*commands(settings()["words"]["index"]), "interlingua --help", "interlingua price --help"]:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=place,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            sys.exit(f"in an empty folder `{command}` fails:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        print(f"works: {command}", flush=True)
    return place / "venv" / "bin" / "python"


def main() -> None:
    """Build, check, try out, and fill dist/."""
    asked = argparse.ArgumentParser(prog="make release", description=__doc__)
    asked.add_argument("--version", required=True)
    asked.add_argument("--repository", default="")
    asked.add_argument("--into", type=Path, default=ROOT / "dist")
    asked.add_argument("--faults", type=Path, help=argparse.SUPPRESS)
    given = asked.parse_args()
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", given.version):
        sys.exit("say make release VERSION=1.2.3")
    if given.faults:
        found = [fault for path in sorted(given.faults.iterdir()) for fault in faults(path, given.version)]
        print("\n".join(found))
        sys.exit(bool(found))
    release(given.version, given.repository.rstrip("/") or NO_ADDRESS, given.into)


def release(version: str, address: str, into: Path) -> None:
    """Build, check and try out in a temporary folder, then fill `into` with the files of an upload."""
    words = notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    python = make_venv()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        dist = build_twice(python, work, version, address)
        check(python, dist, version)
        user = try_out(work, dist, version)
        bom = [python, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--of", "JSON"]
        venv.run(*bom, "-o", work / "sbom.cdx.json", user)
        shutil.rmtree(into, ignore_errors=True)
        shutil.copytree(dist, into / "packages")
        shutil.copy(work / "sbom.cdx.json", into)
    (into / "NOTES.md").write_text(words, encoding="utf-8")
    made = sorted(path for path in into.rglob("*") if path.is_file())
    (into / "SHA256SUMS").write_text("".join(f"{digest(path)}  {path.relative_to(into).as_posix()}\n" for path in made))
    print(f"{into.name}/: {len(made)} files for {version}")
    if address == NO_ADDRESS:
        print("not for an upload: the links have no address. Say make release VERSION=… REPOSITORY=https://…")


if __name__ == "__main__":
    main()
