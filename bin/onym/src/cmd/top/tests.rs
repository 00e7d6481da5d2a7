use super::model::{App, Face, Node, Prefix, Reaction, Snapshot, Tables};
use super::question::Question;
use super::view;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::{Duration, Instant};

/// What a node of this size tells, with all faces and as many prefixes.
fn large(faces: u32, routes: u64) -> Snapshot {
    let face = |face| Face {
        face,
        uri: format!("udp4://10.1.{}.{}:6363", face / 250, face % 250),
        up: true,
        in_packets: face.into(),
        queue_bytes: face.into(),
        queue_bytes_max: 100_000,
        rtt_us: Some(face.into()),
        ..Face::default()
    };
    let prefix = |n| Prefix {
        prefix: format!("/site/{n}/videos"),
        interests: n as f64,
        ..Prefix::default()
    };
    let table = Tables { routes, entries: routes, routes_max: 1 << 20, ..Tables::default() };
    Snapshot {
        interval_ms: 1000,
        node: Node { fib: table.clone(), rib: table, ..Node::default() },
        faces_count: faces as usize,
        faces: (0..faces).map(face).collect(),
        prefixes: (0..faces).map(prefix).collect(),
        ..Snapshot::default()
    }
}

fn press(app: &mut App, code: KeyCode) {
    assert_ne!(app.key(KeyEvent::new(code, KeyModifiers::NONE)), Reaction::End);
}

/// What is on a screen of 120 columns and 40 lines.
fn screen(terminal: &mut Terminal<TestBackend>, app: &mut App) -> String {
    terminal.draw(|frame| view::draw(frame, app)).unwrap();
    terminal.backend().to_string()
}

/// Law: with 10,000 faces, as many prefixes and 100,000 routes each key is answered by a frame below
/// 50 ms, at the first row, at the last one, and while a filter is typed.
#[test]
fn ten_thousand_rows_stay_fluid() {
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    let mut app = App::new(Question::default());
    app.take(Ok(large(10_000, 100_000)));
    app.take(Ok(large(10_000, 100_000)));
    let keys = [
        KeyCode::Home,
        KeyCode::Down,
        KeyCode::PageDown,
        KeyCode::End,
        KeyCode::Up,
        KeyCode::Char('/'),
        KeyCode::Char('9'),
        KeyCode::Char('9'),
        KeyCode::Enter,
        KeyCode::Esc,
    ];
    for list in ['1', '2'] {
        press(&mut app, KeyCode::Char(list));
        for key in keys {
            // What else runs on this machine disturbs some of them.
            let fastest = (0..5).map(|_| {
                let start = Instant::now();
                screen(&mut terminal, &mut app);
                start.elapsed()
            });
            let fastest = fastest.min().unwrap();
            assert!(fastest < Duration::from_millis(50), "{list}, before {key:?}: {fastest:?}");
            press(&mut app, key);
        }
    }
}

/// Law: the chosen row is on the screen wherever it is in the list, and the rows about it.
#[test]
fn the_chosen_row_is_on_the_screen() {
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    let mut app = App::new(Question::default());
    app.take(Ok(large(1_000, 0)));
    let at = |face: u32| format!("udp4://10.1.{}.{}:6363 ", face / 250, face % 250);
    let first = screen(&mut terminal, &mut app);
    assert!(
        first.contains(&at(0)) && first.contains(&at(28)) && !first.contains(&at(29)),
        "{first}"
    );
    press(&mut app, KeyCode::End);
    let last = screen(&mut terminal, &mut app);
    assert!(
        last.contains(&at(999)) && last.contains(&at(971)) && !last.contains(&at(970)),
        "{last}"
    );
    press(&mut app, KeyCode::PageUp);
    let up = screen(&mut terminal, &mut app);
    assert!(up.contains(&at(971)) && !up.contains(&at(972)), "{up}");
}

/// Law: a filter is asked of the node where a list is shown, and nowhere else; until the node answers for
/// it, the screen says of how many rows it is.
#[test]
fn a_filter_is_asked_of_the_node_and_its_part_is_said() {
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    let mut app = App::new(Question::default());
    let told = Snapshot { faces_count: 5_000, faces_found: Some(5_000), ..large(100, 0) };
    app.take(Ok(told));
    let before = screen(&mut terminal, &mut app);
    assert!(before.contains("faces by packets: the first 100 of 5000"), "{before}");
    assert!(before.contains("(of 100 faces)"), "what the rates are of: {before}");
    press(&mut app, KeyCode::Char('/'));
    let key = KeyEvent::new(KeyCode::Char('7'), KeyModifiers::NONE);
    assert_eq!(app.key(key), Reaction::Ask);
    assert_eq!(app.question.text, "7");
    let asking = screen(&mut terminal, &mut app);
    assert!(asking.contains("faces by packets: 19 with 7 of 100 that were told"), "{asking}");
    let found = Snapshot { faces_found: Some(900), text: "7".into(), ..large(100, 0) };
    let found = Snapshot { faces_count: 5_000, ..found };
    let once = view::text(&found);
    assert!(once.contains("Faces: the first 100 of 900 with 7, of 5000\n"), "{once}");
    app.take(Ok(found));
    let answered = screen(&mut terminal, &mut app);
    assert!(answered.contains("the first 100 of 900 with 7, of 5000"), "{answered}");
    press(&mut app, KeyCode::Esc);
    let cleared = screen(&mut terminal, &mut app);
    assert!(cleared.contains("faces by packets: 100 with 7 "), "{cleared}");
    for key in [KeyCode::Char('/'), KeyCode::Char('7'), KeyCode::Enter] {
        press(&mut app, key);
    }
    let why = KeyEvent::new(KeyCode::Char('w'), KeyModifiers::NONE);
    assert_eq!(app.key(why), Reaction::Ask, "what slows the node down is of all faces");
    assert_eq!(app.question.text, "");
}
