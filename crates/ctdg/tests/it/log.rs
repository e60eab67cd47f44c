//! The log of a live stream: what was appended comes back, and damage is named.

use std::fs;
use std::path::Path;

use ctdg::dataset::log::{EventLog, LogEvent, LogRequest, Opened, Receipt, RequestKey, is_log, repair};
use ctdg::dataset::{ReadOptions, read};
use ctdg::event::EventStream;

fn requests() -> Vec<LogRequest> {
    let event = |src: &str, dst: &str, time: f64| LogEvent::new(src, dst, time);
    let receipt = Receipt { accepted: 2, duplicates: 1, first: 1, last: 9, watermark: 4.5 };
    let key = |name: &str| Some(RequestKey { name: name.into(), fingerprint: 5, receipt });
    vec![
        LogRequest { key: key("first"), events: vec![event("1", "2", 11.0), event("3", "1", 11.0)] },
        LogRequest::new(vec![LogEvent { id: Some("e-7".into()), label: 1.0, ..event("2", "40", 12.5) }]),
        LogRequest {
            key: key("ключ"),
            events: vec![event("5", "1", 13.0), event("5", "5", 13.0), event("1", "2", 14.0)],
        },
    ]
}

fn base() -> EventStream {
    EventStream::from_events([(1, 2, 10.0), (2, 3, 11.0)]).unwrap()
}

/// A log of three requests, each of its own append.
fn written(folder: &Path) {
    let mut log = EventLog::create(folder, &base()).unwrap();
    for request in requests() {
        log.append(&[request]).unwrap();
    }
}

/// All requests of a log, with the sequence number of their first event.
fn opened(folder: &Path) -> ctdg::Result<(Vec<(u64, LogRequest)>, Opened)> {
    let mut all = Vec::new();
    let mut keep = |sequence, request| {
        all.push((sequence, request));
        Ok(())
    };
    let (_, found) = EventLog::open(folder, &mut keep)?;
    Ok((all, found))
}

fn expected() -> Vec<(u64, LogRequest)> {
    [3, 5, 6].into_iter().zip(requests()).collect()
}

#[test]
fn what_was_appended_comes_back_after_opening_again() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("log");
    written(&folder);
    assert!(is_log(&folder) && !is_log(place.path()));
    assert_eq!(opened(&folder).unwrap(), (expected(), Opened::default()));
    let (mut log, _) = EventLog::open(&folder, &mut |_, _| Ok(())).unwrap();
    assert_eq!((log.sequence(), log.base().unwrap()), (8, base()));
    assert_eq!(log.append(&requests()[..2]).unwrap(), 9);
    assert_eq!(EventLog::open(&folder, &mut |_, _| Ok(())).unwrap_err().code(), "log-in-use");
    // Another process reads it meanwhile.
    assert_eq!(read(&folder, &ReadOptions::default()).unwrap().len(), 11);
    drop(log);
    assert_eq!(opened(&folder).unwrap().0.len(), 5);
    assert_eq!(EventLog::create(&folder, &base()).unwrap_err().code(), "io");
}

#[test]
fn a_log_is_read_as_a_file_of_its_events() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("log");
    written(&folder);
    let csv = place.path().join("same.csv");
    let line = |event: &LogEvent| format!("{},{},{},{}\n", event.src, event.dst, event.time, event.label);
    let lines: String = requests().iter().flat_map(|request| &request.events).map(line).collect();
    let text = ["src,dst,time,label\n1,2,10,0\n2,3,11,0\n", &lines].concat();
    fs::write(&csv, text).unwrap();
    assert_eq!(read(&folder, &ReadOptions::default()).unwrap(), read(&csv, &ReadOptions::default()).unwrap());

    // A name that is no integer makes all of them text; late events are sorted.
    let (mut log, _) = EventLog::open(&folder, &mut |_, _| Ok(())).unwrap();
    log.append(&[LogRequest::new(vec![LogEvent::new("ann", "1", 12.0)])]).unwrap();
    let stream = read(&folder, &ReadOptions::default()).unwrap();
    assert!(stream.names().is_text());
    assert_eq!(stream.names().name(stream.src()[4]), "ann");
}

#[test]
fn features_and_a_log_without_a_beginning_are_kept() {
    let place = tempfile::tempdir().unwrap();
    let mut columns = base().into_columns();
    columns.edge_features = Some(ctdg::event::Features::new(2, vec![1.0, 2.0, 3.0, 4.0]).unwrap());
    let mut log = EventLog::create(&place.path().join("wide"), &EventStream::new(columns).unwrap()).unwrap();
    let event = LogEvent { features: vec![5.0, 6.0], ..LogEvent::new("1", "2", 12.0) };
    log.append(&[LogRequest::new(vec![event, LogEvent::new("1", "2", 13.0)])]).unwrap();
    let stream = read(&place.path().join("wide"), &ReadOptions::default()).unwrap();
    assert_eq!(stream.edge_features().unwrap().values(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0, 0.0]);

    let empty = place.path().join("empty");
    let mut log = EventLog::create(&empty, &EventStream::from_events([]).unwrap()).unwrap();
    assert_eq!(read(&empty, &ReadOptions::default()).unwrap_err().code(), "no-events");
    log.append(&requests()[..1]).unwrap();
    assert_eq!(read(&empty, &ReadOptions::default()).unwrap().len(), 2);
}

/// Copies `from` to a new folder.
fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}

#[test]
fn every_truncation_is_an_unfinished_append_or_named() {
    let place = tempfile::tempdir().unwrap();
    let (folder, other) = (place.path().join("log"), place.path().join("cut"));
    written(&folder);
    let bytes = fs::read(folder.join("events.log")).unwrap();
    for n in 88..bytes.len() {
        // Acknowledged: the events are lost, and said to be.
        copy(&folder, &other);
        fs::write(other.join("events.log"), &bytes[..n]).unwrap();
        for error in [read(&other, &ReadOptions::default()).unwrap_err(), opened(&other).unwrap_err()] {
            assert_eq!(error.code(), "damaged-log", "{n}: {error}");
        }
        // Not acknowledged: the whole requests before it are all there, and the rest is cut off.
        copy(&folder, &other);
        fs::write(other.join("events.log"), &bytes[..n]).unwrap();
        fs::remove_file(other.join("acknowledged")).unwrap();
        let (found, report) = opened(&other).unwrap();
        assert_eq!(found, expected()[..found.len()], "{n}");
        assert!(found.len() < 3);
        assert_eq!(opened(&other).unwrap(), (found, Opened::default()), "{n}: cut off {report:?}");
    }
}

#[test]
fn every_flipped_bit_is_named_or_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (folder, other) = (place.path().join("log"), place.path().join("flipped"));
    written(&folder);
    for name in ["events.log", "base.ctdg", "acknowledged"] {
        let bytes = fs::read(folder.join(name)).unwrap();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            copy(&folder, &other);
            fs::write(other.join(name), &flipped).unwrap();
            match opened(&other) {
                Ok((found, report)) => {
                    assert_eq!(found, expected(), "{name} {at}");
                    assert!(name == "acknowledged" || !report.mended.is_empty(), "{name} {at}");
                    assert_eq!(opened(&other).unwrap(), (expected(), Opened::default()), "mended");
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(
                        text.contains(name) && text.contains("damage") || text.contains("checksum"),
                        "{name} {at}: {text}"
                    );
                    assert!(read(&other, &ReadOptions::default()).is_err(), "{name} {at}");
                }
            }
        }
    }
}

#[test]
fn a_repair_keeps_every_whole_request_and_the_damaged_file() {
    let place = tempfile::tempdir().unwrap();
    let (folder, other) = (place.path().join("log"), place.path().join("damaged"));
    written(&folder);
    assert_eq!(repair(&folder).unwrap(), None);
    let bytes = fs::read(folder.join("events.log")).unwrap();
    let all = requests();
    let middle = bytes.windows(3).position(|word| word == b"e-7").unwrap();
    for (at, lost) in [(100, 0), (middle, 1), (bytes.len() - 9, 2)] {
        copy(&folder, &other);
        let mut flipped = bytes.clone();
        flipped[at] ^= 16;
        fs::write(other.join("events.log"), &flipped).unwrap();
        assert!(opened(&other).is_err());
        let repaired = repair(&other).unwrap().unwrap();
        assert_eq!(repaired.damage.len(), 1);
        let of_lost = &repaired.damage[0].events;
        assert_eq!((of_lost.start, of_lost.end - of_lost.start), (expected()[lost].0, all[lost].events.len() as u64));
        assert_eq!(fs::read(&repaired.kept_as).unwrap(), flipped);
        let found: Vec<LogRequest> = opened(&other).unwrap().0.into_iter().map(|(_, request)| request).collect();
        let kept: Vec<LogRequest> = (0..3).filter(|at| *at != lost).map(|at| all[at].clone()).collect();
        assert_eq!(found, kept);
    }
}
