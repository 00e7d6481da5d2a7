//! Content store and PIT of the kernel stack.

use super::{Erased, ShownCs, ShownPending, ShownPit, failure, open};
use crate::human;
use crate::output::Context;
use onym_kernel::control::{Cs, Pit};
use onym_wire::{Name, NameRef};

fn print_cs(cx: &Context, cs: Cs) -> anyhow::Result<()> {
    cx.print(&ShownCs::of(cs), ShownCs::text)
}

/// `onym cs info --kernel`.
pub(crate) fn cs_info(cx: &Context) -> anyhow::Result<()> {
    let cs = open()?.cs().map_err(failure)?;
    print_cs(cx, cs)
}

/// `onym cs config --kernel`.
pub(crate) fn cs_config(
    cx: &Context,
    capacity: Option<u64>,
    admit: Option<bool>,
    serve: Option<bool>,
) -> anyhow::Result<()> {
    let mut control = open()?;
    let capacity = capacity.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    control.set_cs(capacity, admit, serve).map_err(failure)?;
    let cs = control.cs().map_err(failure)?;
    print_cs(cx, cs)
}

/// `onym cs erase --kernel`.
pub(crate) fn cs_erase(cx: &Context, prefix: &Name, count: Option<u64>) -> anyhow::Result<()> {
    let most = count.map_or(u32::MAX, |n| u32::try_from(n).unwrap_or(u32::MAX));
    let erased = open()?.erase(prefix.as_ref().value(), most).map_err(failure)?;
    let shown = Erased { prefix: prefix.to_string(), erased };
    cx.print(&shown, |e| format!("{} packets under {} erased", e.erased, e.prefix))
}

fn print_pit(cx: &Context, pit: Pit) -> anyhow::Result<()> {
    let Pit { capacity, entries, bytes, bytes_max } = pit;
    cx.print(&ShownPit { capacity, entries, bytes, bytes_max }, |p| {
        format!(
            "capacity  {} entries, {}\nentries   {}\nmemory    {}",
            p.capacity,
            human::bytes(p.bytes_max),
            p.entries,
            human::bytes(p.bytes)
        )
    })
}

/// `onym pit info --kernel`.
pub(crate) fn pit_info(cx: &Context) -> anyhow::Result<()> {
    let pit = open()?.pit().map_err(failure)?;
    print_pit(cx, pit)
}

/// `onym pit config --kernel`.
pub(crate) fn pit_config(
    cx: &Context,
    capacity: Option<u64>,
    bytes: Option<u64>,
) -> anyhow::Result<()> {
    let mut control = open()?;
    let capacity = capacity.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    control.set_pit(capacity, bytes).map_err(failure)?;
    let pit = control.pit().map_err(failure)?;
    print_pit(cx, pit)
}

/// `onym pit list --kernel`.
pub(crate) fn pit_list(cx: &Context, under: Option<&Name>) -> anyhow::Result<()> {
    let all = open()?.pending().map_err(failure)?;
    let shown: Vec<_> = all
        .iter()
        .filter_map(|p| NameRef::parse_value(&p.name).ok().map(|name| (p, name.to_name())))
        .filter(|(_, name)| under.is_none_or(|u| u.as_ref().is_prefix_of(name.as_ref())))
        .map(|(p, name)| ShownPending {
            name: name.to_string(),
            can_be_prefix: p.can_be_prefix,
            must_be_fresh: p.must_be_fresh,
            downstreams: p.downstreams,
            lifetime_ms: p.lifetime_ms,
        })
        .collect();
    cx.print(&shown, |pending| {
        let yes = |on| if on { "yes" } else { "no" }.to_string();
        let row = |p: &ShownPending| {
            vec![
                p.name.clone(),
                yes(p.can_be_prefix),
                yes(p.must_be_fresh),
                p.downstreams.to_string(),
                format!("{} ms", p.lifetime_ms),
            ]
        };
        let rows: Vec<_> = pending.iter().map(row).collect();
        human::table(&["NAME", "PREFIX", "FRESH", "DOWNSTREAMS", "LEFT"], &rows)
    })
}

/// `onym pit erase --kernel`.
pub(crate) fn pit_erase(cx: &Context, prefix: &Name, count: Option<u64>) -> anyhow::Result<()> {
    let most = count.map_or(u32::MAX, |n| u32::try_from(n).unwrap_or(u32::MAX));
    let erased = open()?.end_pending(prefix.as_ref().value(), most).map_err(failure)?;
    let shown = Erased { prefix: prefix.to_string(), erased };
    cx.print(&shown, |e| format!("{} pending Interests under {} ended", e.erased, e.prefix))
}
