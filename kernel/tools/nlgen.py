#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Write what user space and kernel share: the netlink family from
spec/netlink/nnet.yaml, the sockets from spec/netlink/socket.yaml.

kernel/tools/nlgen.py            write what differs
kernel/tools/nlgen.py --check    write nothing, fail when something differs
"""
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "spec/netlink/nnet.yaml"
SOCKET = ROOT / "spec/netlink/socket.yaml"
MAN = ROOT / "kernel/man/nnet.7.in"
LICENCE = "SPDX-License" "-Identifier: GPL-2.0-only OR MIT"
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


SOCKET_NOTE = NOTE.replace("nnet.yaml", "socket.yaml")


def symbol(group, entry):
    return entry.get("symbol") or "NNET_" + (upper(group) + "_" if group else "") + upper(entry["name"])


def socket_header(spec):
    out = [f"/* {LICENCE} */", f"/* {SOCKET_NOTE} */", "/*"]
    out += [" * AF_NNET: sockets of named data. What a program needs beside <sys/socket.h>.", " */"]
    out += ["#ifndef _UAPI_LINUX_NNET_H", "#define _UAPI_LINUX_NNET_H", ""]
    out += ["#include <linux/types.h>", "#include <linux/socket.h>", ""]
    out += ["/* The number of the family is a module parameter: /sys/module/nnet/parameters/family. */"]
    for c in spec["constants"]:
        value = hex(c["value"]) if c["name"] == "ethertype" else c["value"]
        out.append(f"#define {symbol('', c)}\t{value}" + (f"\t/* {c['doc']} */" if "doc" in c else ""))
    for g in spec["groups"]:
        out += ["", f"/* {g['doc']} */", "enum {"]
        for e in g["entries"]:
            said = ": ".join(str(e[k]) for k in ("type", "doc") if k in e)
            out.append(f"\t{symbol(g['name'], e)} = {e['value']}," + (f"\t/* {said} */" if said else ""))
        out.append("};")
    for t in spec["structs"]:
        out += [""] + ([f"/* {t['doc']} */"] if "doc" in t else []) + [f"struct {t['name']} {{"]
        for f in t["fields"]:
            out.append(f"\t{f['type']} {f['name']};" + (f"\t/* {f['doc']} */" if "doc" in f else ""))
        out.append("};")
    out += ["", "#endif /* _UAPI_LINUX_NNET_H */", ""]
    return "\n".join(out)


def rust_doc(entry, group):
    said = ": ".join(str(entry[k]) for k in ("type", "doc") if k in entry) or entry["name"]
    said = f"{group}: {said}"
    # Words of the interface are code.
    said = re.sub(r"\b(\w+\(\)|[A-Z]+_[A-Z_]+|NDNLPv2|NextHopFaceId|IncomingFaceId|InterestLifetime|CanBePrefix|FinalBlockId|SignatureInfo)", r"`\1`", said)
    return said[0].upper() + said[1:].rstrip(".") + "."


def rust_const(group, entry, typed):
    return f"pub const {symbol(group, entry).removeprefix('NNET_')}: {typed.get('rust', 'i32')} = {entry['value']};"


def socket_rust(spec):
    out = [f"// {SOCKET_NOTE}", "", "//! Numbers of the sockets of `AF_NNET`.", ""]
    for c in spec["constants"]:
        out += [f"/// {rust_doc(c, 'Constant')}", rust_const("", c, c)]
    for g in spec["groups"]:
        for e in g["entries"]:
            out += [f"/// {rust_doc(e, g['doc'])}", rust_const(g["name"], e, g)]
    return "\n".join(out) + "\n"


def socket_python(spec):
    out = [f"# {SOCKET_NOTE}", '"""Numbers of the sockets of AF_NNET."""', ""]
    for c in spec["constants"]:
        out.append(f"{symbol('', c).removeprefix('NNET_')} = {c['value']}")
    out.append("")
    for g in spec["groups"]:
        for e in g["entries"]:
            out.append(f"{symbol(g['name'], e).removeprefix('NNET_')} = {e['value']}")
    return "\n".join(out) + "\n"


def roff(text):
    return str(text).replace("\\", "\\e").replace("~", "\\(ti").replace("-", "\\-")


def first_upper(text):
    """A sentence; what has capitals of its own keeps them."""
    return text[0].upper() + text[1:]


def man_table(group):
    out = []
    for e in group["entries"]:
        way = "get only" if e.get("set") is False else "set only" if e.get("get") is False else ""
        kind = ", ".join(x for x in (e.get("type", ""), way) if x)
        out += [".TP", f".BR {symbol(group['name'], e)} \" ({kind})\"", roff(first_upper(e.get("doc", e["name"]))) + "."]
    return "\n".join(out)


def man(spec):
    text = MAN.read_text().replace("@NOTE@", SOCKET_NOTE)
    for g in spec["groups"]:
        if "table" in g:
            text = text.replace(f"@{g['table']}@", man_table(g))
    return text


TARGETS = {
    "kernel/generated/nnet_nl.h": c_header,
    "kernel/generated/nnet_nl_ops.h": c_ops_header,
    "kernel/generated/nnet_nl_ops.c": c_ops,
    "crates/kernel/src/generated.rs": rust,
    "clients/python/onym/_nnet_netlink.py": python,
}
SOCKET_TARGETS = {
    "kernel/include/uapi/linux/nnet.h": socket_header,
    "crates/sys/src/nnet_numbers.rs": socket_rust,
    "clients/python/onym/_nnet_socket.py": socket_python,
    "kernel/man/nnet.7": man,
}


def main():
    specs = [(SPEC, TARGETS), (SOCKET, SOCKET_TARGETS)]
    stale = 0
    for path, text in ((p, write(yaml.safe_load(s.read_text()))) for s, t in specs for p, write in t.items()):
        target = ROOT / path
        if target.exists() and target.read_text() == text:
            continue
        stale += 1
        if "--check" in sys.argv:
            print(f"{path} is not what its description in spec/netlink says: run kernel/tools/nlgen.py")
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            print(f"wrote {path}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
