#!/usr/bin/python3
"""Stands in for vmware-rpctool: keeps guestinfo in the JSON file that GUESTINFO_STATE names."""

import json
import os
import sys

path = os.environ["GUESTINFO_STATE"]
with open(path, encoding="utf-8") as f:
    state = json.load(f)

verb, _, rest = sys.argv[1].partition(" ")
if verb == "info-get":
    if not state.get(rest):
        sys.stderr.write("No value found")
        sys.exit(1)
    sys.stdout.write(state[rest])
elif verb == "info-set":
    key, _, value = rest.partition(" ")
    state[key] = value
    with open(path, "w", encoding="utf-8") as f:
        json.dump(state, f)
else:
    sys.exit("unknown command " + verb)
