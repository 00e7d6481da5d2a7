use super::*;

/// What a client of either version sends.
fn said(version: Version) -> Vec<Vec<u8>> {
    let topic = || TopicName::try_from("a/b").unwrap();
    let filter = || mqtt_proto::TopicFilter::try_from("a/+/#").unwrap();
    let one = Pid::try_from(7).unwrap();
    let encoded = match version {
        Version::V3 => [
            v3::Packet::Connect(v3::Connect::new("me".into(), 60)),
            v3::Packet::Publish(v3::Publish::new(QosPid::Level2(one), topic(), b"x"[..].into())),
            v3::Packet::Subscribe(v3::Subscribe::new(one, vec![(filter(), QoS::Level1)])),
        ]
        .map(|packet| packet.encode().unwrap().as_ref().to_vec()),
        Version::V5 => [
            v5::Packet::Connect(v5::Connect::new("me".into(), 60)),
            v5::Packet::Publish(v5::Publish::new(QosPid::Level2(one), topic(), b"x"[..].into())),
            v5::Packet::Subscribe(v5::Subscribe::new(
                one,
                vec![(filter(), v5::SubscriptionOptions::new(QoS::Level1))],
            )),
        ]
        .map(|packet| packet.encode().unwrap().as_ref().to_vec()),
    };
    encoded.to_vec()
}

#[test]
fn packets_of_both_versions_read_alike() {
    for of in [Version::V3, Version::V5] {
        let all = said(of);
        assert_eq!(version(&all[0]), Ok(of));
        assert!(all.iter().all(|packet| length(packet) == Ok(Some(packet.len()))));
        let read: Vec<Said> = all.iter().map(|packet| read(of, packet).unwrap()).collect();
        let (client, topic) = ("me".into(), "a/b".into());
        let (keep_alive, receive_max, packet_max) = (60, u16::MAX, u32::MAX);
        let (version, will) = (of, None);
        let (is_clean, expiry) = (true, 0);
        let connect = Connect {
            version,
            client,
            is_clean,
            expiry,
            keep_alive,
            will,
            receive_max,
            packet_max,
        };
        let message = Message { topic, payload: b"x"[..].into(), retain: false };
        assert_eq!(
            read,
            [
                Said::Connect(connect),
                Said::Publish(message, Quality::Exactly(7)),
                Said::Subscribe(7, vec![("a/+/#".into(), Level::Least)]),
            ]
        );
    }
}

#[test]
fn what_is_to_be_acknowledged_has_a_number_and_a_filter_its_level_in_both_versions() {
    let message = || Message { topic: "a".into(), payload: b"x"[..].into(), retain: true };
    let levels = [Level::Most, Level::Least, Level::Exactly].map(Ok);
    let answers = [&levels[..], &[Err(Reason::Filter)]].concat();
    for (of, codes) in [(Version::V3, [0, 1, 2, 0x80]), (Version::V5, [0, 1, 2, 0x8f])] {
        for (delivered, quality, dup) in [
            (Delivered::First(Quality::Most), Quality::Most, 0),
            (Delivered::First(Quality::Least(9)), Quality::Least(9), 0),
            (Delivered::Again(Quality::Least(9)), Quality::Least(9), 8),
            (Delivered::First(Quality::Exactly(9)), Quality::Exactly(9), 0),
            (Delivered::Again(Quality::Exactly(9)), Quality::Exactly(9), 8),
        ] {
            let mut out = Vec::new();
            write(of, &Answer::Published(message(), delivered), &mut out);
            assert_eq!(read(of, &out), Ok(Said::Publish(message(), quality)));
            assert_eq!(out[0] & 8, dup);
        }
        let mut out = Vec::new();
        write(of, &Answer::Subscribed(7, answers.clone()), &mut out);
        assert!(out.ends_with(&codes), "{out:?}");
        assert_eq!(read(of, &[0x40, 2, 0, 9]), Ok(Said::Acknowledge(9)));
        assert_eq!(read(of, &[0x40, 2, 0, 0]), Err(Reason::Malformed));
    }
    // With a reason why it was not taken: it is done with, too.
    assert_eq!(read(Version::V5, &[0x40, 3, 0, 9, 0x97]), Ok(Said::Acknowledge(9)));
}

#[test]
fn what_is_to_come_exactly_once_is_let_go_of_in_both_versions() {
    for (of, unknown) in
        [(Version::V3, &[0x62, 2, 0, 9][..]), (Version::V5, &[0x62, 3, 0, 9, 0x92])]
    {
        assert_eq!(read(of, &[0x50, 2, 0, 9]), Ok(Said::Received(9)));
        assert_eq!(read(of, &[0x70, 2, 0, 9]), Ok(Said::Completed(9)));
        for kind in [0x50, 0x70] {
            assert_eq!(read(of, &[kind, 2, 0, 0]), Err(Reason::Malformed));
            assert_eq!(read(of, &[kind, 1, 0]), Err(Reason::Malformed));
        }
        for (reason, octets) in [(None, &[0x62, 2, 0, 9][..]), (Some(Reason::Unknown), unknown)] {
            let mut out = Vec::new();
            write(of, &Answer::Release(9, reason), &mut out);
            assert_eq!(out, octets);
        }
    }
    // With what a client of MQTT 5 thinks of it.
    let received = |code| read(Version::V5, &[0x50, 3, 0, 9, code]);
    assert_eq!([0, 0x10].map(received), [Ok(Said::Received(9)), Ok(Said::Received(9))]);
    for code in [0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99] {
        assert_eq!(received(code), Ok(Said::Declined(9)), "{code}");
    }
    for code in [1, 0x7f, 0xff] {
        assert_eq!(received(code), Err(Reason::Malformed), "{code}");
    }
    assert_eq!(read(Version::V5, &[0x70, 3, 0, 9, 0x92]), Ok(Said::Completed(9)));
}

#[test]
fn a_maximum_of_nothing_is_a_protocol_error() {
    let connect = |receive_max, packet_max| {
        let mut connect = v5::Connect::new("me".into(), 60);
        connect.properties.receive_max = receive_max;
        connect.properties.max_packet_size = packet_max;
        let packet = v5::Packet::Connect(connect).encode().unwrap();
        match read(Version::V5, packet.as_ref()) {
            Ok(Said::Connect(connect)) => Ok((connect.receive_max, connect.packet_max)),
            other => Err(other),
        }
    };
    assert_eq!(connect(Some(0), None), Err(Err(Reason::Protocol)));
    assert_eq!(connect(None, Some(0)), Err(Err(Reason::Protocol)));
    assert_eq!(connect(Some(1), Some(2)), Ok((1, 2)));
    assert_eq!(connect(None, None), Ok((u16::MAX, u32::MAX)));
    let mut out = Vec::new();
    write(Version::V5, &Answer::Refused(Reason::Protocol), &mut out);
    assert_eq!(out[3], 0x82);
}

#[test]
fn the_length_of_a_publication_is_known_before_it_is_written() {
    for len in (0..300).chain(16_370..16_390).chain(2_097_140..2_097_160) {
        for (level, number) in [
            (Level::Most, Delivered::First(Quality::Most)),
            (Level::Least, Delivered::First(Quality::Least(9))),
        ] {
            let message =
                Message { topic: "a".into(), payload: vec![0; len].into(), retain: false };
            let of = published_len(&message, level);
            let mut out = Vec::new();
            write(Version::V5, &Answer::Published(message, number), &mut out);
            assert_eq!(out.len(), of, "{len} {level:?}");
        }
    }
}

#[test]
fn whatever_octets_come_nothing_worse_happens_than_that_they_are_refused() {
    for of in [Version::V3, Version::V5] {
        for packet in said(of) {
            for at in 0..packet.len() {
                let _ = (read(of, &packet[..at]), version(&packet[..at]), length(&packet[..at]));
                for octet in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut changed = packet.clone();
                    changed[at] = octet;
                    let _ = (read(of, &changed), version(&changed), length(&changed));
                }
            }
        }
    }
    assert_eq!(length(&[0x30, 0x80, 0x80, 0x80, 0x80, 1]), Err(Reason::Malformed));
    assert_eq!(length(&[0x30, 0xff, 0xff, 0xff, 0x7f]), Ok(Some(268_435_460)));
    assert_eq!((length(&[]), length(&[0x30, 0x80])), (Ok(None), Ok(None)));
}

#[test]
fn what_a_client_wants_of_its_session_and_what_it_gets_is_in_both_versions() {
    let of = |packet: &[u8], version| match read(version, packet) {
        Ok(Said::Connect(connect)) => (connect.is_clean, connect.expiry),
        other => panic!("{other:?}"),
    };
    for (clean_session, expiry) in [(true, 0), (false, u32::MAX)] {
        let connect = v3::Connect { clean_session, ..v3::Connect::new("me".into(), 60) };
        let packet = v3::Packet::Connect(connect).encode().unwrap();
        assert_eq!(of(packet.as_ref(), Version::V3), (clean_session, expiry));
    }
    for (clean_start, asked, expiry) in [(true, None, 0), (false, Some(7), 7)] {
        let mut connect = v5::Connect { clean_start, ..v5::Connect::new("me".into(), 60) };
        connect.properties.session_expiry_interval = asked;
        let packet = v5::Packet::Connect(connect).encode().unwrap();
        assert_eq!(of(packet.as_ref(), Version::V5), (clean_start, expiry));
    }
    let mut disconnect = v5::Disconnect::new(v5::DisconnectReasonCode::NormalDisconnect);
    disconnect.properties.session_expiry_interval = Some(9);
    let packet = v5::Packet::Disconnect(disconnect).encode().unwrap();
    let said = Said::Disconnect { with_will: false, expiry: Some(9) };
    assert_eq!(read(Version::V5, packet.as_ref()), Ok(said));

    let (mut v3, mut v5) = (Vec::new(), Vec::new());
    let name = Some("given".into());
    let welcome = Answer::Connected(Welcome { is_present: true, packet_max: 9, expiry: 7, name });
    write(Version::V3, &welcome, &mut v3);
    assert_eq!(v3, [0x20, 2, 1, 0]);
    write(Version::V5, &welcome, &mut v5);
    let Ok(Some(v5::Packet::Connack(connack))) = v5::Packet::decode(&v5) else { panic!("{v5:?}") };
    let v5::ConnackProperties { session_expiry_interval, assigned_client_id, .. } =
        connack.properties;
    assert!(connack.session_present);
    assert_eq!((session_expiry_interval, assigned_client_id), (Some(7), Some("given".into())));
    let mut out = Vec::new();
    write(Version::V3, &Answer::Refused(Reason::Name), &mut out);
    assert_eq!(out, [0x20, 2, 0, 2]);
}
