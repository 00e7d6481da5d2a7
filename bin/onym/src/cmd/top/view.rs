//! The screen of `onym top`, and its text for `--once`.

use super::model::{App, Face, Node, Prefix, Snapshot, View};
use super::why;
use crate::human;
use crate::node_words;
use crate::plain;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Paragraph, Row, Sparkline, Table, TableState, Wrap};
use std::fmt::Write as _;
use std::ops::Range;

/// Explains what is not evident.
const HELP: &str = "\
Faces
  in/s, out/s   packets a second
  bit/s         of frames, with link headers
  queue         octets that wait to be sent, and what part of the bound that is
  loss/s        packets that were not sent: the queue was full, the face was down, the packet did not fit
  mark/s        packets marked for congestion
  rtt           from an Interest sent to its Data, by samples; - where none was seen

Prefixes (by samples, operators only)
  ±             Interests and Data together may be so many more or fewer, nineteen times of twenty
  hits          Interests that the content store answered
  drops         Interests that ended in a drop; `onym dump --prefix NAME` shows with which verdict

Tables
  unsatisfied   pending Interests that ended without Data

Keys
  1 faces  2 prefixes  3 tables and drops  4 push  w what slows the node down
  arrows, PgUp, PgDn, Home, End move; Enter shows a face alone; Esc goes back
  s changes the order of faces; / shows what has a text, of all that there is, Esc ends it; p pauses; q ends";

/// A rate in at most six characters.
fn short(n: f64) -> String {
    match n {
        n if n <= 0.0 => "0".to_owned(),
        n if n < 10.0 => format!("{n:.1}"),
        n if n < 10_000.0 => format!("{n:.0}"),
        n if n < 10_000_000.0 => format!("{:.0}k", n / 1e3),
        n => format!("{:.0}M", n / 1e6),
    }
}

fn bits(octets: f64) -> String {
    human::bits_per_second(octets * 8.0)
}

#[allow(clippy::cast_precision_loss)]
fn rtt(us: Option<u64>) -> String {
    match us {
        None => "-".to_owned(),
        Some(us) if us < 1000 => format!("{us} µs"),
        Some(us) if us < 100_000 => format!("{:.1} ms", us as f64 / 1e3),
        Some(us) => format!("{} ms", us / 1000),
    }
}

/// A part in hundredths.
#[allow(clippy::cast_precision_loss)]
fn percent(part: f64, whole: f64) -> String {
    if whole <= 0.0 { "-".to_owned() } else { format!("{:.0} %", 100.0 * part / whole) }
}

#[allow(clippy::cast_precision_loss)]
fn queue(face: &Face) -> String {
    if face.queue_bytes == 0 {
        return "0".to_owned();
    }
    let part = percent(face.queue_bytes as f64, face.queue_bytes_max as f64);
    format!("{} ({part})", human::bytes(face.queue_bytes))
}

const FACE_HEAD: [&str; 10] =
    ["face", "in/s", "out/s", "in bit/s", "out bit/s", "queue", "loss/s", "mark/s", "rtt", "uri"];

fn face_cells(face: &Face) -> [String; 10] {
    let mut uri = plain::line(&face.uri).into_owned();
    if !face.up {
        uri.push_str(" (down)");
    }
    [
        face.face.to_string(),
        short(face.in_packets),
        short(face.out_packets),
        bits(face.in_bytes),
        bits(face.out_bytes),
        queue(face),
        short(face.losses),
        short(face.marked),
        rtt(face.rtt_us),
        uri,
    ]
}

/// What stands behind ± is of Interests and Data together.
const PREFIX_HEAD: [&str; 7] = ["Interests/s", "hits", "drops", "Data/s", "±", "bit/s", "prefix"];

fn prefix_cells(row: &Prefix) -> [String; 7] {
    [
        short(row.interests),
        percent(row.hits, row.interests),
        percent(row.drops, row.interests),
        short(row.data),
        short(row.error),
        bits(row.bytes),
        plain::line(&row.prefix).into_owned(),
    ]
}

/// The program and its version: ours tells the version alone.
fn program(node: &Node) -> String {
    let version = plain::line(&node.version);
    if version.starts_with(|c: char| c.is_ascii_digit()) {
        format!("onym {version}")
    } else {
        version.into_owned()
    }
}

/// Everything of one second, as text.
pub(super) fn text(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    let node = &snapshot.node;
    let up = human::duration_ms(node.now_ms.saturating_sub(node.start_ms));
    let _ = writeln!(
        out,
        "{}, up {up}, {}\n",
        program(node),
        human::count(snapshot.faces_count as u64, "face")
    );
    let part = snapshot.part_of_faces().words(&snapshot.text);
    if !part.is_empty() {
        let _ = writeln!(out, "Faces: {}", plain::line(&part));
    }
    let faces = snapshot.faces.iter().map(|face| face_cells(face).to_vec());
    out += &human::table(&FACE_HEAD, &faces.collect::<Vec<_>>());
    out.push('\n');
    match &snapshot.prefixes_hidden {
        Some(why) => {
            let _ = writeln!(out, "\nPrefixes are not shown: {}", plain::line(why));
        }
        None if snapshot.prefixes.is_empty() && snapshot.text.is_empty() => {
            out += "\nNo prefix was asked for.\n";
        }
        None => {
            let part = snapshot.part_of_prefixes().words(&snapshot.text);
            if !part.is_empty() {
                let _ = writeln!(out, "\nPrefixes: {}", plain::line(&part));
            }
            let rows = snapshot.prefixes.iter().map(|row| prefix_cells(row).to_vec());
            let _ = writeln!(out, "\n{}", human::table(&PREFIX_HEAD, &rows.collect::<Vec<_>>()));
        }
    }
    for line in tables(node, &|_| None) {
        let _ = writeln!(out, "{line}");
    }
    out
}

/// How much a count of the node grows in a second, where that is known.
type Rate<'a> = &'a dyn Fn(&dyn Fn(&Node) -> u64) -> Option<f64>;

/// Lines about tables, and drops with their meaning; `rate` tells how fast a count grows, where
/// that is known.
#[allow(clippy::cast_precision_loss)]
fn tables(node: &Node, rate: Rate<'_>) -> Vec<String> {
    let per = |of: &dyn Fn(&Node) -> u64| match rate(of) {
        Some(rate) => format!(", {}/s", short(rate)),
        None => String::new(),
    };
    let of = |max: u64| if max > 0 { format!(" of {max}") } else { String::new() };
    let asked = node.cs.hits + node.cs.misses;
    let mut lines = vec![
        format!(
            "PIT            {}{} entries, {}",
            node.pit.entries,
            of(node.pit.entries_max),
            human::bytes(node.pit.bytes)
        ),
        format!(
            "satisfied      {}{}; unsatisfied {}{}",
            node.satisfied_interests,
            per(&|n| n.satisfied_interests),
            node.unsatisfied_interests,
            per(&|n| n.unsatisfied_interests)
        ),
        format!(
            "content store  {}{} packets, {}; {} hits{} ({} of lookups), {} misses{}",
            node.cs.entries,
            of(node.cs.packets_max),
            human::bytes(node.cs.bytes),
            node.cs.hits,
            per(&|n| n.cs.hits),
            percent(node.cs.hits as f64, asked as f64),
            node.cs.misses,
            per(&|n| n.cs.misses)
        ),
        format!("FIB            {}{} prefixes", node.fib.entries, of(node.fib.routes_max)),
    ];
    if node.rib.routes_max > 0 {
        lines.push(format!("RIB            {}{} routes", node.rib.routes, of(node.rib.routes_max)));
    }
    type Reasons = fn(&Node) -> &std::collections::BTreeMap<String, u64>;
    let lists: [(&str, Reasons); 3] = [
        ("Dropped packets", |n| &n.dropped),
        ("Dropped frames", |n| &n.frames_dropped),
        ("Not sent", |n| &n.unsent),
    ];
    for (title, list) in lists {
        lines.push(String::new());
        lines.push(title.to_owned());
        if list(node).is_empty() {
            lines.push("  none".to_owned());
        }
        let mut rows: Vec<_> = list(node).iter().collect();
        rows.sort_by(|a, b| b.1.cmp(a.1));
        for (word, count) in rows {
            let grown = per(&|n| list(n).get(word).copied().unwrap_or_default());
            let meaning = node_words::meaning(word).unwrap_or_default();
            lines.push(format!("  {:<24} {count}{grown}  {meaning}", plain::line(word)));
        }
    }
    lines
}

/// Draws the screen.
pub(super) fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let [head, curve, body, foot] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Length(if frame.area().height >= 24 { 5 } else { 0 }),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(header(app)), head);
    draw_curve(frame, app, curve);
    draw_body(frame, app, body);
    frame.render_widget(
        Paragraph::new(footer(app)).style(Style::new().add_modifier(Modifier::DIM)),
        foot,
    );
}

#[allow(clippy::cast_precision_loss)]
fn header(app: &App) -> Vec<Line<'static>> {
    let Some(now) = &app.now else {
        return vec![Line::from(app.trouble.clone().unwrap_or_else(|| "asking the node".into()))];
    };
    let node = &now.node;
    let up = human::duration_ms(node.now_ms.saturating_sub(node.start_ms));
    let sum = |of: fn(&Face) -> f64| now.faces.iter().map(of).sum::<f64>();
    let busy = (0..node.busy_ns.len()).map(|shard| {
        let ns = app.rate(|n| n.busy_ns.get(shard).copied().unwrap_or_default());
        format!("{:.0} %", (ns / 1e7).min(100.0))
    });
    let busy: Vec<_> = busy.collect();
    let told = now.faces.len();
    let of = if told < now.faces_count { format!(" (of {told} faces)") } else { String::new() };
    let state = match (&app.trouble, app.is_paused) {
        (Some(why), _) => format!("  NO ANSWER: {why}"),
        (None, true) => "  PAUSED".to_owned(),
        (None, false) => String::new(),
    };
    vec![
        Line::styled(
            format!("{}  up {up}  {} faces{state}", program(node), now.faces_count),
            Style::new().add_modifier(Modifier::BOLD),
        ),
        Line::from(format!(
            "in {}/s {}   out {}/s {}   lost {}/s{of}   shards busy {}",
            short(sum(|f| f.in_packets)),
            bits(sum(|f| f.in_bytes)),
            short(sum(|f| f.out_packets)),
            bits(sum(|f| f.out_bytes)),
            short(sum(|f| f.losses)),
            if busy.is_empty() { "-".to_owned() } else { busy.join(", ") }
        )),
        Line::from(format!(
            "PIT {}   cache {} packets, hits {}/s, misses {}/s   satisfied {}/s, not {}/s",
            node.pit.entries,
            node.cs.entries,
            short(app.rate(|n| n.cs.hits)),
            short(app.rate(|n| n.cs.misses)),
            short(app.rate(|n| n.satisfied_interests)),
            short(app.rate(|n| n.unsatisfied_interests))
        )),
    ]
}

fn draw_curve(frame: &mut Frame<'_>, app: &App, area: Rect) {
    if area.height < 3 {
        return;
    }
    let columns = Layout::horizontal([Constraint::Percentage(50); 2]).areas::<2>(area);
    for (index, (title, column)) in
        ["packets/s in", "packets/s out"].into_iter().zip(columns).enumerate()
    {
        let width = usize::from(column.width.saturating_sub(2));
        let skip = app.history.len().saturating_sub(width);
        let values: Vec<u64> = app.history.iter().skip(skip).map(|pair| pair[index]).collect();
        let most = values.iter().max().copied().unwrap_or_default();
        #[allow(clippy::cast_precision_loss)]
        let title = format!(" {title}, at most {} ", short(most as f64));
        let block = Block::new().borders(Borders::ALL).title(title);
        frame.render_widget(Sparkline::default().block(block).data(&values), column);
    }
}

fn draw_body(frame: &mut Frame<'_>, app: &mut App, area: Rect) {
    let block = |title: String| Block::new().borders(Borders::TOP).title(title);
    match app.view {
        View::Faces => {
            let shown = window(app, area, app.faces().len());
            let faces = app.faces();
            let rows = faces[shown.clone()].iter().map(|f| face_cells(f).to_vec());
            let part = app.part(faces.len(), Snapshot::part_of_faces);
            let title = titled(format!("faces by {}", app.question.order.word()), &part);
            const WIDTHS: [u16; 9] = [7, 7, 7, 13, 13, 17, 7, 7, 9];
            let table = table(&FACE_HEAD, &WIDTHS, rows).block(block(title));
            frame.render_stateful_widget(table, area, &mut chosen(app, &shown));
        }
        View::Prefixes => {
            let hidden = app.now.as_ref().and_then(|now| now.prefixes_hidden.clone());
            if let Some(why) = hidden {
                let text = format!("Prefixes are not shown: {}", plain::line(&why));
                return paragraph(frame, area, block(" prefixes ".into()), vec![text]);
            }
            let shown = window(app, area, app.prefixes().len());
            let prefixes = app.prefixes();
            let rows = prefixes[shown.clone()].iter().map(|p| prefix_cells(p).to_vec());
            const WIDTHS: [u16; 6] = [12, 8, 8, 8, 8, 14];
            let part = app.part(prefixes.len(), Snapshot::part_of_prefixes);
            let title = titled("prefixes by packets, from samples".to_owned(), &part);
            let table = table(&PREFIX_HEAD, &WIDTHS, rows).block(block(title));
            frame.render_stateful_widget(table, area, &mut chosen(app, &shown));
        }
        View::Face(id) => {
            paragraph(frame, area, block(format!(" face {id} ")), face_alone(app, id))
        }
        View::Tables => {
            let rate = |of: &dyn Fn(&Node) -> u64| Some(app.rate(of));
            let lines = app.now.as_ref().map(|now| tables(&now.node, &rate)).unwrap_or_default();
            paragraph(frame, area, block(" tables and drops ".into()), lines);
        }
        View::Push => paragraph(frame, area, block(" push ".into()), push(app)),
        View::Why => {
            // Until the node answers for all of its faces.
            let now = app.now.as_ref().filter(|now| now.ailing.is_some());
            let found = now.map(|now| why::text(&why::since(now, app.before.as_ref())));
            let found = found.unwrap_or_else(|| "asking the node".to_owned());
            let lines = found.lines().map(str::to_owned).collect();
            paragraph(frame, area, block(" what slows this node down ".into()), lines);
        }
        View::Help => {
            let lines = HELP.lines().map(str::to_owned).collect();
            paragraph(frame, area, block(" help ".into()), lines);
        }
    }
}

/// The title of a list of which a part is shown.
fn titled(what: String, part: &str) -> String {
    if part.is_empty() { format!(" {what} ") } else { format!(" {what}: {} ", plain::line(part)) }
}

/// Which of `count` rows are on the screen: those that fit, with the chosen one among them. Only they
/// are written, however many there are.
fn window(app: &mut App, area: Rect, count: usize) -> Range<usize> {
    // A line each for the title and the heads of columns.
    let fit = usize::from(area.height.saturating_sub(2)).max(1);
    app.page = (fit - 1).max(1);
    app.selected = app.selected.min(count.saturating_sub(1));
    let first = (app.selected + 1).saturating_sub(fit);
    first..count.min(first + fit)
}

/// The chosen row, of those on the screen.
fn chosen(app: &App, shown: &Range<usize>) -> TableState {
    TableState::new()
        .with_selected(shown.contains(&app.selected).then(|| app.selected - shown.start))
}

/// A list; the last column takes what is left.
fn table<'a>(
    head: &[&'static str],
    widths: &[u16],
    rows: impl Iterator<Item = Vec<String>>,
) -> Table<'a> {
    let widths = widths.iter().map(|w| Constraint::Length(*w)).chain([Constraint::Min(20)]);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    Table::new(rows.map(Row::new), widths)
        .header(Row::new(head.iter().copied()).style(bold))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
}

fn paragraph(frame: &mut Frame<'_>, area: Rect, block: Block<'_>, lines: Vec<String>) {
    let lines: Vec<Line<'_>> = lines.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines).block(block).wrap(Wrap { trim: false }), area);
}

fn face_alone(app: &App, id: u32) -> Vec<String> {
    let face = app.now.iter().flat_map(|now| &now.faces).find(|face| face.face == id);
    let Some(face) = face else { return vec!["This face is gone.".to_owned()] };
    vec![
        format!("remote     {}", plain::line(&face.uri)),
        format!("local      {}", plain::line(&face.local_uri)),
        format!(
            "state      {}, {}",
            if face.up { "up" } else { "down" },
            if face.is_local { "an application of this machine" } else { "a peer" }
        ),
        String::new(),
        format!(
            "in         {} Interests/s, {} Data/s, {} Nacks/s, {}",
            short(face.in_interests),
            short(face.in_data),
            short(face.in_nacks),
            bits(face.in_bytes)
        ),
        format!(
            "out        {} Interests/s, {} Data/s, {} Nacks/s, {}",
            short(face.out_interests),
            short(face.out_data),
            short(face.out_nacks),
            bits(face.out_bytes)
        ),
        format!("queue      {}", queue(face)),
        format!("losses     {}/s, {} since it was made", short(face.losses), face.total_losses),
        format!("marked     {}/s for congestion", short(face.marked)),
        format!("repeated   {}/s by the link", short(face.repeated)),
        format!("round trip {}", rtt(face.rtt_us)),
        format!(
            "in all     {} in, {} out",
            human::bytes(face.total_in_bytes),
            human::bytes(face.total_out_bytes)
        ),
    ]
}

fn push(app: &App) -> Vec<String> {
    let of = |snapshot: &Option<Snapshot>| snapshot.as_ref().and_then(|s| s.push.clone());
    let Some(now) = of(&app.now) else {
        return vec!["The push half is off here (push.enabled).".to_owned()];
    };
    let before = of(&app.before).unwrap_or_else(|| now.clone());
    let ms = app.now.as_ref().map_or(0, |now| now.interval_ms);
    let line = |what: &str, now: u64, before: u64| {
        #[allow(clippy::cast_precision_loss)]
        let rate = if ms == 0 { 0.0 } else { now.saturating_sub(before) as f64 * 1e3 / ms as f64 };
        format!("{what:<28} {now}, {}/s", short(rate))
    };
    vec![
        format!("{:<28} {}", "applications", now.applications),
        format!("{:<28} {}", "scopes and items", now.vertices),
        line("publications sent", now.sent, before.sent),
        line("copies delivered", now.delivered, before.delivered),
        line("missed by slow applications", now.missed, before.missed),
        line("lost between nodes", now.lost, before.lost),
        line("no room in the push half", now.backlog, before.backlog),
        String::new(),
        "Trees and links of an item: onym topology; items: onym scope list.".to_owned(),
    ]
}

fn footer(app: &App) -> String {
    if app.is_typing {
        return format!("filter: {}_", app.filter);
    }
    let filter =
        if app.filter.is_empty() { String::new() } else { format!("filter {}  ", app.filter) };
    format!(
        "{filter}1 faces 2 prefixes 3 tables 4 push  w why  s order  / filter  p pause  ? help  q end"
    )
}
