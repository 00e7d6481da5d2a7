#![allow(clippy::unwrap_used)]

use super::*;
use onym_frame::Buf;
use onym_link::LpIn;
use onym_tables::pit::Token;

const ALL: SpanSettings = SpanSettings { sample: 1, rate_max: 1_000_000, seed: 7 };

fn packet(first: u8, token: &[u8]) -> Packet {
    let lp = LpIn { pit_token: Token::try_from(token).unwrap(), ..LpIn::default() };
    Packet { face: FaceId(301), bytes: Buf::copy_from(&[first, 0]), lp }
}

fn interest() -> Packet {
    packet(5, &[])
}

fn data(token: &[u8]) -> Packet {
    packet(6, token)
}

const fn wait(n: u8, due_ms: u64) -> Wait {
    Wait { token: [0, 0, 0, n, 0, n], due: Tick::from_ms(due_ms), can_be_prefix: false }
}

/// Begins a span at `ms` that waits.
fn open(spans: &mut Spans, ms: u64, wait: Wait) -> TraceContext {
    let now = Tick::from_ms(ms);
    let context = spans.begin(now, None).unwrap();
    let span = Span {
        context,
        parent: None,
        name: Vec::new(),
        from: FaceId(300),
        to: Faces::default(),
        began: now,
        ended: now,
        outcome: Outcome { word: "forwarded", is_drop: false },
        end: End::Decided,
    };
    spans.decided(span, Some(wait));
    context
}

/// Law: one in so many, and what has a period is sampled as anything else.
#[test]
fn the_share_of_traffic_is_sampled_whatever_its_period() {
    let mut spans = Spans::new(SpanSettings { sample: 100, ..ALL });
    let mut by_place = [0_u32; 100];
    for n in 1..=1_000_000 {
        let place = &mut by_place[usize::try_from(n % 100).unwrap()];
        *place += u32::from(spans.samples(n));
    }
    let sum: u32 = by_place.iter().sum();
    assert!((9_500..10_500).contains(&sum), "{sum}");
    assert!(by_place.iter().all(|n| (40..200).contains(n)), "{by_place:?}");
    let mut none = Spans::new(SpanSettings { sample: 0, ..ALL });
    assert!((1..100_000).all(|n| !none.samples(n)));
}

#[test]
fn a_span_is_in_the_trace_that_its_interest_came_with() {
    let mut spans = Spans::new(ALL);
    let now = Tick::from_ms(1);
    let first = spans.begin(now, None).unwrap();
    let next = spans.begin(now, Some(first)).unwrap();
    assert_eq!(next.trace, first.trace);
    assert_ne!(next.span, first.span);
    assert_ne!(spans.begin(now, None).unwrap().trace, first.trace);
}

/// Law: the rate binds, traces of others included, and what it leaves out is counted.
#[test]
fn spans_beyond_the_rate_are_left_out_and_counted() {
    let mut spans = Spans::new(SpanSettings { rate_max: 10, ..ALL });
    let came = TraceContext { trace: 1, span: 1 };
    let mut begun = 0;
    for ms in 1_000..11_000 {
        begun += u64::from(spans.begin(Tick::from_ms(ms), Some(came)).is_some());
    }
    assert!((100..=111).contains(&begun), "10 a second, and those of a second at once: {begun}");
    assert_eq!(spans.counts(), SpanCounts { begun, left_out: 10_000 - begun });
}

#[test]
fn the_answer_ends_the_span_and_says_who_gave_it() {
    let mut spans = Spans::new(ALL);
    let first = open(&mut spans, 10, wait(1, 4000));
    let second = open(&mut spans, 11, wait(2, 4000));
    assert!(!spans.may_end(&interest()) && !spans.may_end(&data(&[0, 0, 0, 9, 0, 9])));
    let answer = data(&[0, 0, 0, 1, 0, 1]);
    assert!(spans.may_end(&answer));
    spans.answered(Tick::from_ms(25), &answer, |token| token[3] != 1);
    let mut nack = data(&[]);
    nack.lp.nack = Some(NackReason::NO_ROUTE);
    assert!(spans.may_end(&nack), "without a token it may be any");
    spans.answered(Tick::from_ms(30), &nack, |_| false);
    let done = spans.take(Tick::from_ms(31), |_| true);
    assert_eq!(done[0].context, first);
    assert_eq!((done[0].ended, done[0].end), (Tick::from_ms(25), End::Data(FaceId(301))));
    assert_eq!(done[1].context, second);
    assert_eq!(done[1].end, End::Nack(FaceId(301), NackReason::NO_ROUTE));
    assert!(spans.take(Tick::from_ms(32), |_| true).is_empty(), "each once");
    assert!(!spans.may_end(&answer), "nothing is open");
}

/// Law: what ended without an answer that was seen is not said to be answered.
#[test]
fn without_an_answer_a_span_ends_with_its_lifetime_or_when_nobody_waits() {
    let mut spans = Spans::new(ALL);
    open(&mut spans, 10, wait(1, 1000));
    open(&mut spans, 10, wait(2, 9000));
    open(&mut spans, 10, wait(3, 9000));
    let mut done = spans.take(Tick::from_ms(2000), |token| token[3] == 3);
    done.sort_by_key(|span| span.ended.0);
    let ends: Vec<_> = done.iter().map(|span| (span.ended, span.end)).collect();
    let (due, now) = (Tick::from_ms(1000), Tick::from_ms(2000));
    assert_eq!(ends, [(due, End::Unanswered), (now, End::Ended)]);
}

/// Law: a prefix may be answered under any token.
#[test]
fn data_with_another_token_may_answer_a_prefix() {
    let mut spans = Spans::new(ALL);
    open(&mut spans, 10, Wait { can_be_prefix: true, ..wait(1, 1000) });
    let other = data(&[0, 0, 0, 7, 0, 7]);
    assert!(spans.may_end(&other));
    spans.answered(Tick::from_ms(20), &other, |_| false);
    open(&mut spans, 30, wait(2, 1000));
    assert!(!spans.may_end(&other));
}

/// Law: the table is bounded, and the overdue give way.
#[test]
fn at_the_bounds_interests_are_not_recorded() {
    let mut spans = Spans::new(ALL);
    for _ in 0..OPEN_MAX {
        open(&mut spans, 2000, wait(1, 3000));
    }
    assert_eq!(spans.begin(Tick::from_ms(2500), None), None);
    for n in OPEN_MAX..SPANS_MAX {
        assert!(spans.begin(Tick::from_ms(4000), None).is_some(), "{n}");
        open(&mut spans, 4000, wait(1, 4000));
    }
    assert_eq!(spans.begin(Tick::from_ms(9000), None), None, "nobody takes them");
    assert_eq!(spans.counts().left_out, 2);
    assert_eq!(spans.take(Tick::from_ms(9000), |_| true).len(), SPANS_MAX);
    assert!(spans.begin(Tick::from_ms(9000), None).is_some());
}
