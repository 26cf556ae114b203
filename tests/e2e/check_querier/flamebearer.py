# SPDX-License-Identifier: Apache-2.0
"""Pyroscope's layout of flame graphs, read without any code of the project: shared by the checks of its APIs."""


def flame(levels, names):
    """{path: (total, self)} of a flamebearer, by geometry alone. Nodes without a value are left out."""
    found, above = {}, [(0, levels[0][1], "")]
    for depth, row in enumerate(levels):
        here, x = [], 0
        for i in range(0, len(row), 4):
            x += row[i]
            total, self_, name = row[i + 1], row[i + 2], names[row[i + 3]]
            if not total:
                continue
            parents = [p for b, e, p in above if b <= x and x + total <= e] if depth else [""]
            assert len(parents) == 1, (depth, i, parents)
            key = f"{parents[0]};{name}" if depth else name
            found[key] = (total, self_)
            here.append((x, x + total, key))
            x += total
        above = here
    return found
