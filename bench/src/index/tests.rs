use super::names::Names;
use super::*;
use onym_tables::FaceId;

#[test]
fn every_content_index_finds_what_it_holds_and_nothing_else() {
    for components in [4, 16, 64] {
        let names = Names::new(components, 10);
        for kind in StoreKind::ALL {
            let store = store::filled(kind, &names, 3000).unwrap();
            for n in 0..3000 {
                assert!(store.find(names.name(n).value()), "{kind:?} {n}");
                assert!(!store.find(names.name(n + 3000).value()), "{kind:?} {n}");
            }
        }
    }
}

#[test]
fn every_content_index_carries_exchanges() {
    let names = Names::new(16, 100);
    for kind in StoreKind::ALL {
        let store = store::filled(kind, &names, 100).unwrap();
        assert!(store::exchanges(kind, &store, &names, 100, 50, 1).unwrap() > 0.0);
    }
}

#[test]
fn every_fib_finds_the_same_longest_prefix() {
    let names = Names::new(8, 0);
    for kind in FibKind::ALL {
        let mut fib = fib::filled(kind, &names, 2000).unwrap();
        let deep = names.under_route(7);
        let cut = deep.as_ref().prefix(5).to_name();
        fib.add(cut.value(), FaceId(9)).unwrap_or_else(|error| {
            // The hash table is full at its bound; the tree has none.
            assert!(error.to_string().contains("limit"), "{error}");
        });
        for n in 0..2000 {
            let found = fib.find(names.under_route(n).value());
            let wanted = if n == 7 && kind == FibKind::Trie { FaceId(9) } else { FaceId(n) };
            assert_eq!(found, Some(wanted), "{kind:?} {n}");
        }
        assert_eq!(fib.find(names.under_route(5000).value()), None, "{kind:?}");
    }
}

#[test]
fn a_bloom_filter_forgets_nothing_and_lets_few_strangers_pass() {
    let mut bloom = Bloom::new(10_000);
    let key = onym_tables::HashKey::new(1, 2);
    let hash = |n: u32| key.name(&n.to_be_bytes());
    (0..10_000).for_each(|n| bloom.insert(hash(n)));
    assert!((0..10_000).all(|n| bloom.may_hold(hash(n))));
    let passed = (10_000..20_000).filter(|n| bloom.may_hold(hash(*n))).count();
    assert!(passed < 200, "{passed} of 10000 strangers pass");
}

#[test]
fn a_skip_list_keeps_the_first_of_equal_names() {
    let names = Names::new(4, 10);
    let mut list = SkipList::<skip_list::Decoded>::new(1);
    for n in [3, 1, 2, 1, 3] {
        list.insert(names.data(n).unwrap(), names.name(n).value());
    }
    assert_eq!(list.len(), 3);
    assert!(!list.is_empty());
    assert!(list.holds(names.name(2).value()));
    assert!(!list.holds(names.name(4).value()));
}
