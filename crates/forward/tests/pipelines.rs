//! The pipelines, rule by rule.

mod support;

use onym_forward::Verdict;
use support::{Bench, I};

#[test]
fn an_interest_goes_up_and_its_data_comes_back_with_the_downstreams_token() {
    let mut b = Bench::new().faces(2).route("/a", 257, 0);
    assert_eq!(b.interest(256, &I::new("/a/b", 1).token(&[7, 8, 9])), Verdict::Forwarded);
    let left = b.left();
    assert_eq!((left[0].face, left[0].name.as_str(), left[0].token.len()), (257, "/a/b", 8));
    assert_eq!(b.data_with(257, "/a/b", 0, &left[0].token), Verdict::Satisfied);
    let left = b.left();
    assert_eq!(
        (left[0].face, left[0].name.as_str(), &left[0].token[..]),
        (256, "/a/b", &[7, 8, 9][..])
    );
    assert_eq!(b.fw.pit_len(), 0);
    assert_eq!(b.interest(256, &I::new("/a/b", 2)), Verdict::CsHit);
    assert_eq!(b.short(), ["256 data /a/b"]);
    assert!(b.fw.counters().receptions_balance() && b.fw.counters().copies_balance());
}
