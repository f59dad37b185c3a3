"""Boots a pretend guest: the installed cloud-init's own VMware data source reads guestinfo through the
vmware-rpctool on PATH, and what it understood is printed as one JSON object. Arguments: a directory to work in, and
one that is the guest's disk: cloud-init keeps there what it knows about earlier boots."""

import hashlib
import json
import os
import sys

from cloudinit import distros, dmi, helpers, stages
from cloudinit.handlers.jinja_template import render_jinja_payload_from_file
from cloudinit.net import eni, netplan, network_state, networkd
from cloudinit.sources import DataSourceVMware

# Renderers with the paths they write to, below the target. Some versions have absolute defaults, which would
# take the files out of the target and onto this very machine.
RENDERERS = {
    "netplan": (netplan, {"netplan_path": "etc/netplan/50-cloud-init.yaml"}),
    "networkd": (networkd, {}),
    "eni": (eni, {"eni_path": "etc/network/interfaces"}),
}


def rendered_networks(config, work):
    """Returns all files, as one text, that each renderer makes of the network configuration."""
    out = {}
    for name, (module, options) in RENDERERS.items():
        renderer, target = module.Renderer(options), os.path.join(work, name)
        state = network_state.parse_net_config_data(
            config, skip_broken=False, renderer=renderer
        )
        renderer.render_network_state(state, target=target)
        texts = []
        for folder, _, files in sorted(os.walk(target)):
            for file in sorted(files):
                with open(os.path.join(folder, file), encoding="utf-8") as f:
                    texts.append(f.read())
        out[name] = "\n".join(texts)
    return out


def rendered_userdata(ds, paths, work):
    """Renders user data with the instance data cloud-init keeps, as its jinja handler does."""
    if not (ds.userdata_raw or "").startswith("## template: jinja"):
        return ""
    ds.persist_instance_data()
    name = "instance-data-sensitive.json"
    if not os.path.exists(os.path.join(paths.run_dir, name)):
        name = "instance-data.json"
    return render_jinja_payload_from_file(
        ds.userdata_raw, os.path.join(work, "userdata"), os.path.join(paths.run_dir, name)
    )


def is_new_instance(ds, dirs):
    """Decides as the boot stages do whether this is the first boot of an instance, and notes it on the disk."""
    init = stages.Init()
    init._cfg = {"system_info": {"paths": dirs}}
    init.datasource = ds
    new = init.is_new_instance()
    init.instancify()
    return new


def main(work, disk):
    dmi.read_dmi_data = lambda key: "VMware7,1"
    dirs = {"cloud_dir": os.path.join(disk, "cloud"), "run_dir": os.path.join(work, "run")}
    paths = helpers.Paths(dirs)
    for folder in (paths.run_dir, paths.cloud_dir):
        os.makedirs(folder, exist_ok=True)
    distro = distros.fetch("debian")("debian", {}, paths)
    ds = DataSourceVMware.DataSourceVMware({}, distro, paths)
    found = ds.get_data()

    userdata, config = ds.userdata_raw, ds.network_config
    hostname = ds.get_hostname(fqdn=False)
    json.dump(
        {
            "found": found,
            "newInstance": is_new_instance(ds, dirs),
            "instanceID": ds.get_instance_id(),
            "hostname": getattr(hostname, "hostname", hostname),
            "providerID": ds.metadata.get("provider_id"),
            "waitOnNetwork": ds.metadata.get("wait-on-network"),
            "network": config,
            "networkFiles": rendered_networks(config, work),
            "userdata": userdata is not None,
            "userdataSHA256": hashlib.sha256((userdata or "").encode()).hexdigest(),
            "rendered": rendered_userdata(ds, paths, work),
        },
        sys.stdout,
    )


main(sys.argv[1], sys.argv[2])
