# SPDX-License-Identifier: Apache-2.0
"""Runs inside gProfiler's own Python: what its readers make of .col files, as JSON. Nothing here is a reader of ours.

readers.py read FILE.col...   sums by stack of each file, and of all
readers.py arguments WORD...  the options its parser makes of a command line; exit 2 when it refuses
"""
import json
import logging
import sys
from collections import Counter
from pathlib import Path

complaints = []


class Keep(logging.Handler):
    def emit(self, record):
        complaints.append(record.getMessage())


def read(files):
    from gprofiler.gprofiler_types import ProfileData
    from gprofiler.merge import concatenate_from_external_file, merge_profiles
    from gprofiler.metadata.enrichment import EnrichmentOptions
    from gprofiler.system_metrics import Metrics
    from gprofiler.utils.collapsed_format import parse_one_collapsed, parse_one_collapsed_file

    logging.getLogger().addHandler(Keep())
    options = EnrichmentOptions(profile_api_version=None, container_names=True, application_identifiers=True, application_identifier_args_filters=[],
                                application_metadata=True)
    everything, out = Counter(), []
    for file in files:
        stacks = parse_one_collapsed_file(Path(file))
        everything += stacks
        start, end, upload = concatenate_from_external_file(file, {})
        header = json.loads(upload.split("\n", 1)[0][1:])
        # What their merge is given: results by process. A .col file has no pids; one that is made up stands for all that tells lines apart.
        native, runtime, pids = {}, {}, {}
        for stack, count in stacks.items():
            index, container, comm, *frames = stack.split(";")
            appid = frames.pop(0)[len("appid: "):] if frames and frames[0].startswith("appid: ") else None
            metadata = header["application_metadata"][int(index)]
            of_runtime = any(frame.endswith("_[p]") for frame in frames)
            pid = pids.setdefault((index, container, comm, appid, of_runtime), 1000 + len(pids))
            data = ProfileData(stacks=Counter(), appid=appid, app_metadata=metadata, container_name=container)
            stacks_of = runtime.setdefault(pid, data).stacks if of_runtime else native.setdefault(pid, data).stacks
            stacks_of[";".join([comm, *frames])] += count
        for pid, data in runtime.items():  # its perf sees the same samples: nothing is rounded by chance
            seen = native[pid] = ProfileData(stacks=Counter(), appid=None, app_metadata=None, container_name=data.container_name)
            seen.stacks[next(iter(data.stacks)).split(";")[0] + ";[unknown]"] += sum(data.stacks.values())
        whole = sum(sum(data.stacks.values()) for data in native.values())
        merged = merge_profiles(perf_pid_to_profiles=native, process_profiles={}, container_names_client=None, enrichment_options=options,
                                metadata=header["metadata"], metrics=Metrics(**header["metrics"]), hwmetrics=None, external_app_metadata={})
        scaled = merge_profiles(perf_pid_to_profiles=native, process_profiles=runtime, container_names_client=None, enrichment_options=options,
                                metadata=header["metadata"], metrics=Metrics(**header["metrics"]), hwmetrics=None, external_app_metadata={})
        out.append({"total": sum(stacks.values()), "stacks": len(stacks), "containers": sorted({stack.split(";")[1] for stack in stacks}),
                    "upload": sum(parse_one_collapsed(upload).values()), "times": [str(start), str(end)], "whole": whole,
                    "merged": sum(parse_one_collapsed(merged).values()), "scaled": sum(parse_one_collapsed(scaled).values()),
                    "scaled_pids": len(runtime), "named": sum(count for stack, count in parse_one_collapsed(scaled).items() if "_[p]" in stack),
                    "header": sorted(header), "metadata": sorted(header["metadata"])})
    print(json.dumps({"files": out, "total": sum(everything.values()), "stacks": dict(everything), "complaints": complaints}))


def arguments(words):
    from gprofiler import main

    sys.argv = ["gprofiler", *words]
    print(json.dumps(main.parse_cmd_args().__dict__, default=repr))


{"read": read, "arguments": arguments}[sys.argv[1]](sys.argv[2:])
