"""The packages of scripts/package, each where nothing else is: a root with the files of what it names, and no more.

Usage: packages.py BUILD_DIR [NAME...]

  * `deb`: a root of the package and of the Debian packages that it depends on, and these on, as dpkg knows them;
  * `tarball`: a root of the tarball and of the C and C++ libraries alone, which every Debian has;
  * `dev`: what the three .deb files have is in one of them only, and a program outside of the tree can find the CMake package;
  * `inside`: sbom.json names what docs/dependencies.md says is linked in, each with a version and a license.

In such a root `cleave run --check` partitions a model and compares, `cleave compile` and `cleave-run` do the same by a program, and what that
gives is what onnxruntime gives here. Needs dpkg-dev, and to be root or user namespaces.
"""
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import onnxruntime

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

MODEL = os.path.join(harness.ROOT, "test", "Models", "bert_ts17.onnx")
PLAN = os.path.join(harness.ROOT, "examples", "bert.yaml")
BARE = ("libc6", "libgcc-s1", "libstdc++6")


class Failed(Exception):
    pass


def shell(*words, **options):
    done = subprocess.run(words, capture_output=True, text=True, **options)
    if done.returncode:
        raise Failed(f"{' '.join(words)[:120]}: exit {done.returncode}: {(done.stderr + done.stdout).strip()[-400:]}")
    return done.stdout


def pack(build, kind, folder):
    """What cpack makes; compressed fast, since nobody keeps it."""
    shell("cpack", "--config", f"{build}/CPackConfig.cmake", "-G", kind, "-B", folder.path, "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip",
          "-D", "CPACK_STRIP_FILES=OFF")
    ending = ".deb" if kind == "DEB" else ".tar.gz"
    return sorted(folder.at(name) for name in os.listdir(folder.path) if name.endswith(ending))


def list_needed(package):
    """A .deb file's packages, and what these depend on; of alternatives what is installed."""
    depends = shell("dpkg-deb", "-f", package, "Depends")
    needed, ahead = set(), [depends]
    while ahead:
        for choice in ahead.pop().split(","):
            names = [re.sub(r"[ :(].*", "", name.strip()) for name in choice.split("|") if name.strip()]
            there = next((name for name in names if subprocess.run(["dpkg-query", "-W", name], capture_output=True).returncode == 0), None)
            if there and there not in needed:
                needed.add(there)
                ahead.append(shell("dpkg-query", "-W", "-f=${Depends}", there))
    return needed


def install(root, packages):
    """Copies the files of installed packages to `root`: what a Debian has that has these alone."""
    for package in packages:
        for path in shell("dpkg", "-L", package).split("\n"):
            # What is at the top is a folder, or a link to one below /usr.
            if "/share/" in path or path.count("/") < 2 or not os.path.exists(path) or (os.path.isdir(path) and not os.path.islink(path)):
                continue
            # /lib is /usr/lib, as on every Debian of today.
            to = root + (path if path.startswith("/usr") else "/usr" + path)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            if not os.path.lexists(to):
                shutil.copy2(path, to, follow_symlinks=False)
    for name in ("lib", "lib64", "bin"):
        os.makedirs(f"{root}/usr/{name}", exist_ok=True)
        os.symlink(f"usr/{name}", f"{root}/{name}")
    os.makedirs(f"{root}/tmp")
    os.makedirs(f"{root}/proc")


def find_entrance(root):
    """The words that run a command in the root, in namespaces of its own, so that nothing is left of /proc, which loaders ask where a program
    is; nothing where this machine lets nobody have such."""
    own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    enter = [shutil.which("unshare") or "unshare", *own, "--mount", "--pid", "--fork", f"--mount-proc={root}/proc"]
    try:
        allowed = subprocess.run([*enter, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        allowed = False
    return [*enter, shutil.which("chroot") or "/usr/sbin/chroot"] if allowed else None


def use(root, prefix):
    """Runs a model in the root, and compares with onnxruntime, which is out here."""
    enter = find_entrance(root)
    if not enter:
        return print("namespaces are not allowed here: what is in a package was not run by itself")
    shutil.copy(MODEL, f"{root}/tmp/m.onnx")
    shutil.copy(PLAN, f"{root}/tmp/plan.yaml")

    def run(tool, *words):
        return shell(*enter, root, f"{prefix}/bin/{tool}", *words, env={"PATH": "/nowhere"})

    said = run("cleave", "run", "/tmp/m.onnx", "--plan", "/tmp/plan.yaml", "--check", "--save-inputs", "/tmp/in.npz", "--outputs", "/tmp/out.npz")
    if said.count(": ok, largest difference") != 2:
        raise Failed(f"--check says {said[-200:]}")
    run("cleave", "compile", "/tmp/m.onnx", "--plan", "/tmp/plan.yaml", "-o", "/tmp/m.cleave")
    run("cleave-run", "/tmp/m.cleave", "--inputs", "/tmp/in.npz", "--outputs", "/tmp/program.npz")
    run("cleave-opt", "--version")
    session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    expected = session.run(names, dict(np.load(f"{root}/tmp/in.npz")))
    for file in ("out.npz", "program.npz"):
        for name, values in zip(names, expected):
            got = np.load(f"{root}/tmp/{file}")[name]
            if got.shape != values.shape or not np.allclose(got, values, rtol=1e-4, atol=1e-5):
                raise Failed(f"{file}: {name} is off by {np.abs(got - values).max()}")
    for path in ("share/man/man1/cleave.1", "share/bash-completion/completions/cleave", "share/doc/cleave/copyright", "share/doc/cleave/sbom.json"):
        if not os.path.getsize(f"{root}{prefix}/{path}"):
            raise Failed(f"{path} is empty")


def try_deb(build):
    with harness.Folder(build, "cleave-deb-") as folder:
        package = next(path for path in pack(build, "DEB", folder) if os.path.basename(path).startswith("cleave_"))
        install(folder.at("root"), list_needed(package))
        shell("dpkg-deb", "-x", package, folder.at("root"))
        use(folder.at("root"), "/usr")


def try_tarball(build):
    with harness.Folder(build, "cleave-tarball-") as folder:
        (package,) = pack(build, "TGZ", folder)
        install(folder.at("root"), BARE)
        os.makedirs(folder.at("root/opt"))
        shell("tar", "xzf", package, "-C", folder.at("root/opt"))
        (name,) = os.listdir(folder.at("root/opt"))
        use(folder.at("root"), f"/opt/{name}")


def try_dev(build):
    with harness.Folder(build, "cleave-dev-") as folder:
        packages = pack(build, "DEB", folder)
        seen = {}
        for package in packages:
            for line in shell("dpkg-deb", "-c", package).splitlines():
                path = line.split(None, 5)[5].split(" -> ")[0]
                if path.endswith("/"):
                    continue
                if path in seen:
                    raise Failed(f"{path} is in {seen[path]} and in {os.path.basename(package)}")
                seen[path] = os.path.basename(package)
        dev = next(name for name in seen.values() if name.startswith("cleave-dev"))
        wanted = {"./usr/lib/cmake/Cleave/CleaveConfig.cmake": dev, "./usr/include/cleave/runtime.h": dev, "./usr/lib/libcleave_compiler.a": dev,
                  "./usr/bin/cleave-reduce": dev}
        for path, package in wanted.items():
            if seen.get(path) != package:
                raise Failed(f"{path} is in {seen.get(path)}, expected {package}")
        for path in seen:
            if re.search(r"gtest|\.py$|/test/", path):
                raise Failed(f"{path} is no file to be installed")


def try_inside(build):
    with open(f"{build}/share/doc/cleave/sbom.json") as file:
        bom = json.load(file)
    if bom["bomFormat"] != "CycloneDX" or bom["metadata"]["component"]["version"] != "0.1.0":
        raise Failed("the head of sbom.json is wrong")
    with open(os.path.join(harness.ROOT, "docs", "dependencies.md")) as file:
        pages = file.read()
    for component in bom["components"]:
        if not component.get("version") or not component["licenses"] or component["name"].split()[0].lower() not in pages.lower():
            raise Failed(f"{component['name']}: no version, no license, or not a line of docs/dependencies.md")
    names = {component["name"].split(",")[0] for component in bom["components"]}
    linked = subprocess.run(["readelf", "-d", f"{build}/bin/cleave"], capture_output=True, text=True).stdout
    for library, name in {"libzip": "libzip", "libz.": "zlib", "libzstd": "zstd", "libtcmalloc": "tcmalloc (gperftools)"}.items():
        if (library in linked) != (name in names):
            raise Failed(f"{name} is listed, or linked, and not both")


CASES = {"deb": try_deb, "tarball": try_tarball, "dev": try_dev, "inside": try_inside}


def main():
    build, names, _ = harness.arguments()

    def problem(name):
        try:
            CASES[name](build)
        except Failed as error:
            return str(error)
        return None

    sys.exit(harness.run({name: name for name in harness.select(CASES, names)}, problem))


if __name__ == "__main__":
    main()
