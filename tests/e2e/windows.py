# SPDX-License-Identifier: Apache-2.0
"""What a recorder with --window wrote."""
import glob

from support import *


def windows_of(file, **options):
    """The profiles of its windows, in their order; their files are gone then. @file: as given to -o; @options: of Profile."""
    files = glob.glob(file.replace(".pb.gz", "_*.pb.gz"))
    profiles = sorted((Profile(f, **options) for f in files), key=lambda p: p.time_ns)
    for f in files:
        os.unlink(f)
    return profiles
