"""Stop a build that would leave packages out: symbolic links below src/pulsarium, which not every checkout has."""

from pathlib import Path

from setuptools import setup

root = Path(__file__).parent
for each in root.glob("src/pulsarium/*"):
    if not each.is_dir() and not each.suffix:
        raise SystemExit(
            f"{each} is no folder, but should be a symbolic link to one. Git writes such links with core.symlinks: run "
            "`git config core.symlinks true` (in developer mode on Windows) and `git checkout -- src`, and build again"
        )

# Below src, where Python looks for packages, the list of all files would count as a second distribution of this name,
# and pytest would rewrite what that list names: the helpers of tests too.
Path("build").mkdir(exist_ok=True)
setup(options={"egg_info": {"egg_base": "build"}})
