#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR MIT
"""Write both sides of the netlink family from spec/netlink/nnet.yaml.

kernel/tools/nlgen.py            write what differs
kernel/tools/nlgen.py --check    write nothing, fail when something differs
"""
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "spec/netlink/nnet.yaml"
LICENCE = "SPDX-License-Identifier: GPL-2.0 OR MIT"
NOTE = "Written by kernel/tools/nlgen.py from spec/netlink/nnet.yaml; not by hand."
SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}


def upper(name):
    return name.replace("-", "_").upper()


def lower(name):
    return name.replace("-", "_")


def camel(name):
    return "".join(part.capitalize() for part in name.split("-"))


def enums(spec):
    """Names and values of everything counted: (enum, entry, value)."""
    for d in spec["definitions"]:
        for n, entry in enumerate(d["entries"], d["value-start"]):
            yield d["name"], entry, n


def attributes(spec):
    return spec["attribute-sets"][0]["attributes"]


def operations(spec):
    return spec["operations"]["list"]


def requests(spec):
    return [o for o in operations(spec) if "event" not in o]


def c_header(spec):
    out = [f"/* {LICENCE} */", f"/* {NOTE} */", "#ifndef _NNET_NL_H", "#define _NNET_NL_H", ""]
    out += [f'#define NNET_NL_NAME\t"{spec["name"]}"', f"#define NNET_NL_VERSION\t{spec['version']}", ""]
    for d in spec["definitions"]:
        out.append("enum nnet_" + lower(d["name"]) + " {")
        for name, entry, n in enums(spec):
            if name == d["name"]:
                out.append(f"\tNNET_{upper(name)}_{upper(entry)} = {n},")
        out += ["};", ""]
    out.append("enum nnet_attr {")
    for n, a in enumerate(attributes(spec), 1):
        doc = f"\t/* {a['type']}" + (f": {a['doc']}" if "doc" in a else "") + " */"
        out.append(f"\tNNET_A_{upper(a['name'])} = {n},{doc}")
    out += ["\tNNET_A_END,", "\tNNET_A_MAX = NNET_A_END - 1,", "};", "", "enum nnet_cmd {"]
    for n, o in enumerate(operations(spec), 1):
        out.append(f"\tNNET_CMD_{upper(o['name'])} = {n},")
    out += ["\tNNET_CMD_END,", "};", ""]
    for g in spec["mcast-groups"]["list"]:
        out.append(f'#define NNET_GROUP_{upper(g["name"])}\t"{g["name"]}"')
    out += ["", "#endif /* _NNET_NL_H */", ""]
    return "\n".join(out)


def c_policy_entry(a):
    name = f"\t[NNET_A_{upper(a['name'])}] = "
    if a["type"] == "binary":
        return name + f"{{ .type = NLA_BINARY, .len = {a['max-len']} }},"
    if a["type"] == "string":
        return name + f"{{ .type = NLA_NUL_STRING, .len = {a['max-len'] - 1} }},"
    return name + f"{{ .type = NLA_{upper(a['type'])} }},"


def c_ops_header(spec):
    out = [f"/* {LICENCE} */", f"/* {NOTE} */", "#ifndef _NNET_NL_OPS_H", "#define _NNET_NL_OPS_H", ""]
    out += ["#include <net/genetlink.h>", "", '#include "nnet_nl.h"', ""]
    for o in requests(spec):
        if o.get("dump"):
            out.append(f"int nnet_nl_{lower(o['name'])}(struct sk_buff *skb,\n\t\tstruct netlink_callback *cb);")
        else:
            out.append(f"int nnet_nl_{lower(o['name'])}(struct sk_buff *skb, struct genl_info *info);")
    out += ["int nnet_nl_dump_start(struct netlink_callback *cb);"]
    out += ["", "extern const struct nla_policy nnet_nl_policy[NNET_A_END];"]
    out += [f"extern const struct genl_ops nnet_nl_ops[{len(requests(spec))}];"]
    groups = spec["mcast-groups"]["list"]
    out += [f"extern const struct genl_multicast_group nnet_nl_groups[{len(groups)}];"]
    out += ["", "enum {"] + [f"\tNNET_GROUP_INDEX_{upper(g['name'])}," for g in groups] + ["};"]
    out += ["", "#endif /* _NNET_NL_OPS_H */", ""]
    return "\n".join(out)


def c_ops(spec):
    out = [f"// {LICENCE}", f"/* {NOTE} */", '#include "nnet_nl_ops.h"', ""]
    out.append("const struct nla_policy nnet_nl_policy[NNET_A_END] = {")
    out += [c_policy_entry(a) for a in attributes(spec) if a["type"] != "pad"]
    out += ["};", "", f"const struct genl_ops nnet_nl_ops[{len(requests(spec))}] = {{"]
    for o in requests(spec):
        kind = "dumpit" if o.get("dump") else "doit"
        out += ["\t{", f"\t\t.cmd = NNET_CMD_{upper(o['name'])},", f"\t\t.{kind} = nnet_nl_{lower(o['name'])},"]
        if o.get("dump"):
            out.append("\t\t.start = nnet_nl_dump_start,")
        if "admin" in o.get("flags", []):
            out.append("\t\t.flags = GENL_UNS_ADMIN_PERM,")
        out.append("\t},")
    out += ["};", "", f"const struct genl_multicast_group nnet_nl_groups[{len(spec['mcast-groups']['list'])}] = {{"]
    out += [f"\t{{ .name = NNET_GROUP_{upper(g['name'])} }}," for g in spec["mcast-groups"]["list"]]
    out += ["};", ""]
    return "\n".join(out)


def rust(spec):
    out = [f"// {NOTE}", "", "//! Numbers of the netlink family.", ""]
    out += ["/// Name of the family.", f'pub const FAMILY: &str = "{spec["name"]}";', ""]
    for d in spec["definitions"]:
        out += [f"/// Values of `{d['name']}`.", f"pub mod {lower(d['name'])} {{"]
        for name, entry, n in enums(spec):
            if name == d["name"]:
                out += [f"    /// `{entry}`.", f"    pub const {upper(entry)}: u8 = {n};"]
        out += ["}", ""]
    out += ["/// Attributes.", "pub mod attr {"]
    for n, a in enumerate(attributes(spec), 1):
        doc = f"{a['type']}" + (f": {a['doc']}" if "doc" in a else "")
        out += [f"    /// {doc}.", f"    pub const {upper(a['name'])}: u16 = {n};"]
    out += ["}", "", "/// Commands.", "pub mod cmd {"]
    for n, o in enumerate(operations(spec), 1):
        doc = o.get("doc", f"`{o['name']}`").rstrip(".")
        out += [f"    /// {doc[0].upper() + doc[1:]}.", f"    pub const {upper(o['name'])}: u8 = {n};"]
    out += ["}", ""]
    return "\n".join(out)


def python(spec):
    out = [f"# {NOTE}", '"""Numbers of the netlink family of AF_NNET."""', "", f'FAMILY = "{spec["name"]}"', ""]
    for d in spec["definitions"]:
        values = ", ".join(f'"{e}": {n}' for name, e, n in enums(spec) if name == d["name"])
        out.append(f"{upper(d['name'])} = {{{values}}}")
    out += ["", "ATTRIBUTES = {"]
    out += [f'    "{a["name"]}": ({n}, "{a["type"]}"),' for n, a in enumerate(attributes(spec), 1)]
    out += ["}", "COMMANDS = {"]
    out += [f'    "{o["name"]}": {n},' for n, o in enumerate(operations(spec), 1)]
    out += ["}", ""]
    return "\n".join(out)


TARGETS = {
    "kernel/generated/nnet_nl.h": c_header,
    "kernel/generated/nnet_nl_ops.h": c_ops_header,
    "kernel/generated/nnet_nl_ops.c": c_ops,
    "crates/kernel/src/generated.rs": rust,
    "clients/python/onym/_nnet_netlink.py": python,
}


def main():
    spec = yaml.safe_load(SPEC.read_text())
    stale = 0
    for path, write in TARGETS.items():
        target, text = ROOT / path, write(spec)
        if target.exists() and target.read_text() == text:
            continue
        stale += 1
        if "--check" in sys.argv:
            print(f"{path} is not what {SPEC.name} says: run kernel/tools/nlgen.py")
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            print(f"wrote {path}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
