"""Removes what a program left, whatever it is."""

import os
import stat


def empty_folder(folder: str) -> None:
    """Removes all that lies in `folder`: no link is followed; folders of any depth and without permissions included."""
    count = 0
    while True:
        os.chmod(folder, stat.S_IRWXU)
        folders = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    os.unlink(entry.path)
        if not folders:
            return
        for path in folders:
            os.chmod(path, stat.S_IRWXU)
            with os.scandir(path) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        os.unlink(entry.path)
                        continue
                    # Folders further down move up, so that no path grows long.
                    while os.path.lexists(target := os.path.join(folder, f".{count}")):
                        count += 1
                    os.chmod(entry.path, stat.S_IRWXU)
                    os.rename(entry.path, target)
            os.rmdir(path)
