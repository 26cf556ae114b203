# SPDX-License-Identifier: Apache-2.0
"""Reads what otlp_receiver.mjs stored: OTLP profiles, as far as the comparison needs them.

Source: opentelemetry-proto 1.11, profiles/v1development/profiles.proto.
"""
import measure  # noqa: it makes support.py importable
from support import fields, numbers


class Dictionary:
    def __init__(self, data):
        raw = {}
        for number, value in fields(data):
            raw.setdefault(number, []).append(value)
        self.strings = [bytes(s).decode("utf-8", "replace") for s in raw.get(5, [])]
        attributes = [self.attribute(v) for v in raw.get(6, [])]
        self.attributes = attributes
        types = [self.frame_type(v) for v in raw.get(2, [])]
        self.stacks = []
        for value in raw.get(7, []):
            indices = [i for n, part in fields(value) if n == 1 for i in numbers(part)]
            self.stacks.append([types[i] for i in indices])

    def attribute(self, data):
        key = value = ""
        for number, part in fields(data):
            if number == 1:
                key = self.strings[part]
            elif number == 2:
                for kind, inner in fields(part):
                    value = bytes(inner).decode("utf-8", "replace") if kind == 1 else inner
        return key, value

    def frame_type(self, data):
        for number, part in fields(data):
            if number == 4:
                for i in numbers(part):
                    if self.attributes[i][0] == "profile.frame.type":
                        return self.attributes[i][1]
        return ""


class PeerSample:
    __slots__ = ("comm", "types", "times", "pid", "executable")

    @property
    def whole(self):
        """The peer puts a frame of an error's kind where it had to stop."""
        return bool(self.types) and not any("error" in t or "abort" in t for t in self.types)


def resource_of(data):
    found = {}
    for number, part in fields(data):
        if number != 1:
            continue
        key = value = None
        for inner_number, inner in fields(part):
            if inner_number == 1:
                key = bytes(inner).decode("utf-8", "replace")
            else:
                for kind, v in fields(inner):
                    value = bytes(v).decode("utf-8", "replace") if kind == 1 else v
        found[key] = value
    return found


def sample_of(data, words, resource):
    s = PeerSample()
    s.comm, s.types, s.times = "", [], []
    s.pid, s.executable = resource.get("process.pid", 0), resource.get("process.executable.name", "")
    for number, part in fields(data):
        if number == 1:
            s.types = words.stacks[part]
        elif number == 2:
            for i in numbers(part):
                if words.attributes[i][0] == "thread.name":
                    s.comm = words.attributes[i][1]
        elif number == 5:
            s.times += [int.from_bytes(part[i:i + 8], "little") for i in range(0, len(part), 8)] if not isinstance(part, int) else [part]
    return s


def request(data):
    """Samples of one ExportProfilesServiceRequest."""
    parts = {1: [], 2: []}
    for number, value in fields(data):
        parts.setdefault(number, []).append(value)
    words = Dictionary(parts[2][-1]) if parts[2] else None
    found = []
    for resource_profiles in parts[1]:
        resource = {}
        for number, value in fields(resource_profiles):
            if number == 1:
                resource = resource_of(value)
        for number, value in fields(resource_profiles):
            if number != 2:
                continue
            for scope_number, profile in fields(value):
                if scope_number == 2:
                    found += [sample_of(v, words, resource) for n, v in fields(profile) if n == 2]
    return found


def read(file):
    """All stored samples. A time stamp each is one tick."""
    with open(file, "rb") as f:
        data = f.read()
    at, found = 0, []
    while at + 12 <= len(data):
        size = int.from_bytes(data[at + 8:at + 12], "big")
        found += request(data[at + 12:at + 12 + size])
        at += 12 + size
    return found
