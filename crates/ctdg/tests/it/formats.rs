//! Reading and writing every format.

use std::path::{Path, PathBuf};

use ctdg::Problem;
use ctdg::dataset::{
    ColumnRef, FeatureColumns, Format, ReadOptions, WriteFormat, read, read_with_progress, write, write_dyglib,
};
use ctdg::event::{EventStream, Features, IdKind, NodeId, StreamBuilder};
use ctdg::generate::InteractionSpec;
use proptest::prelude::*;

use crate::edge_cases;

fn sample(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/formats").join(name)
}

/// Reads `text` as a file called `name`.
fn parse(name: &str, text: &str, options: &ReadOptions) -> EventStream {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    read(&path, options).unwrap()
}

/// `(source name, destination name, time)` of every event.
fn rows(stream: &EventStream) -> Vec<(String, String, f64)> {
    let row = |id| {
        let event = stream.event(id);
        (stream.names().name(event.src), stream.names().name(event.dst), event.time)
    };
    stream.ids().map(row).collect()
}

fn row(src: &str, dst: &str, time: f64) -> (String, String, f64) {
    (src.into(), dst.into(), time)
}

#[test]
fn columns_are_found_by_name_in_any_order_and_case() {
    let text = "Timestamp;Target;Source;feat_a;note\n1;b;a;0.5;x\n2;c;b;1.5;y\n";
    let stream = parse("x.csv", text, &ReadOptions { format: Format::Text, ..ReadOptions::default() });
    assert_eq!(rows(&stream), [row("a", "b", 1.0), row("b", "c", 2.0)]);
    assert_eq!(stream.edge_features().unwrap().values(), [0.5, 1.5]);
}

#[test]
fn columns_are_found_by_position_without_header() {
    let options = ReadOptions {
        src: Some(ColumnRef::Position(2)),
        dst: Some(ColumnRef::Position(3)),
        time: Some(ColumnRef::Position(1)),
        ..ReadOptions::default()
    };
    let stream = parse("x.tsv", "5\t1\t2\n6\t2\t1\n", &options);
    assert_eq!(rows(&stream), [row("1", "2", 5.0), row("2", "1", 6.0)]);
    let plain = parse("x.txt", "1 2 5\n\n2  1\t6\n", &ReadOptions::default());
    assert_eq!(rows(&plain), rows(&stream), "three unnamed columns are source, destination, time");
}

#[test]
fn byte_order_marks_quotes_and_crlf_are_accepted() {
    let text = "\u{feff}src,dst,time\r\n\"a, b\",\"c \"\"d\"\"\",1\r\n";
    assert_eq!(rows(&parse("x.csv", text, &ReadOptions::default())), [row("a, b", "c \"d\"", 1.0)]);
}

#[test]
fn chosen_and_remaining_columns_are_features() {
    let text = "src,dst,time,weight,kind\n1,2,3,0.5,7\n";
    let with = |features| {
        let stream = parse("x.csv", text, &ReadOptions { features, ..ReadOptions::default() });
        stream.edge_features().map(|features| features.values().to_vec())
    };
    assert_eq!(with(FeatureColumns::Auto), None);
    assert_eq!(with(FeatureColumns::Rest), Some(vec![0.5, 7.0]));
    assert_eq!(with(FeatureColumns::Chosen(vec![ColumnRef::Name("kind".into())])), Some(vec![7.0]));
}

#[test]
fn jodie_header_shorter_than_its_rows_is_accepted() {
    let text = "user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n\
                0,0,0.0,0,0.1,-0.5\n1,0,36.0,1,0.3,0.4\n";
    let stream = parse("wikipedia.csv", text, &ReadOptions::default());
    assert_eq!(stream.names().n_sources(), Some(2), "users and items have separate ids");
    assert_eq!((stream.src(), stream.dst()), (&[0, 1].map(NodeId)[..], &[2, 2].map(NodeId)[..]));
    assert_eq!(stream.labels(), [0.0, 1.0]);
    assert_eq!(stream.edge_features().unwrap().row(1), [0.3, 0.4]);
    let zeros = text.replace("0.1,-0.5", "0,0").replace("0.3,0.4", "0,0");
    assert_eq!(
        parse("lastfm.csv", &zeros, &ReadOptions::default()).edge_features(),
        None,
        "all zeros mean no features"
    );
}

#[test]
fn tgb_edge_lists_have_the_time_first() {
    let coin = "time,src,dst,weight\n5,0xa,0xb,2.5\n7,0xb,0xc,1\n";
    let coin = parse("tgbl-coin_edgelist.csv", coin, &ReadOptions::default());
    assert_eq!(rows(&coin), [row("0xa", "0xb", 5.0), row("0xb", "0xc", 7.0)]);
    assert_eq!(coin.edge_features().unwrap().values(), [2.5, 1.0]);
    let comment = "ts,src,dst,subreddit,num_words,score\n1,ann,bob,rust,12,3\n";
    let comment = parse("tgbl-comment_edgelist.csv", comment, &ReadOptions::default());
    assert_eq!(comment.edge_features().unwrap().values(), [12.0, 3.0], "text columns are not features");
    let wiki = "timestamp,user_id,item_id,state_label,comma_separated_list_of_features\n0,1,9,0,\"0.5,-1,2\"\n";
    let wiki = parse("tgbl-wiki_edgelist_v2.csv", wiki, &ReadOptions::default());
    assert_eq!(wiki.edge_features().unwrap().values(), [0.5, -1.0, 2.0], "a list in one field");
}

#[test]
fn konect_comments_and_weights_are_skipped() {
    let text = "% asym positive\n% 3 4 4\n1 2 1 1082008561\n3 4 1\t1082123439\n";
    let stream = parse("out.opsahl-ucsocial", text, &ReadOptions::default());
    assert_eq!(rows(&stream), [row("1", "2", 1_082_008_561.0), row("3", "4", 1_082_123_439.0)]);
}

#[test]
fn padding_of_dyglib_files_is_dropped() {
    let stream = read(&sample("ml_toy.csv"), &ReadOptions::default()).unwrap();
    assert_eq!(rows(&stream), [row("1", "4", 0.0), row("2", "4", 2.0), row("1", "3", 2.0)]);
    assert_eq!(stream.labels(), [0.0, 1.0, 0.0]);
    assert_eq!(stream.edge_features().unwrap().values(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(stream.node_features(), None, "all zeros mean no features");
}

#[test]
fn dyglib_files_have_its_layout_and_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    for (name, has_features) in [("like-mooc", true), ("like-lastfm", false)] {
        let stream = InteractionSpec::named(name).unwrap().scaled(0.001).unwrap().generate(1).unwrap();
        let file = folder.path().join(format!("ml_{name}.csv"));
        write_dyglib(&stream, &file).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with(",u,i,ts,label,idx\n0,1,"), "{text}");
        let again = read(&file, &ReadOptions::default()).unwrap();
        assert_eq!((again.src(), again.dst(), again.times()), (stream.src(), stream.dst(), stream.times()));
        assert_eq!((again.labels(), again.edge_features()), (stream.labels(), stream.edge_features()));
        assert_eq!((again.edge_features().is_some(), again.node_features()), (has_features, None));
        // Doubles behind a padding row, whose header takes 128 bytes; two columns of zeros where there are no features.
        let (n, width) = (stream.len() as u64, if has_features { 4 } else { 2 });
        let size = |ending: &str| std::fs::metadata(folder.path().join(format!("ml_{name}{ending}"))).unwrap().len();
        assert_eq!(size(".npy"), 128 + 8 * width * (n + 1));
        assert_eq!(size("_node.npy"), 128 + 8 * 172 * (stream.n_nodes() as u64 + 1));
    }
    let error = write_dyglib(&EventStream::from_events(vec![(0, 1, 0.0)]).unwrap(), &folder.path().join("toy.csv"));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("toy.csv") && error.contains("ml_NAME.csv"), "{error}");
}

#[test]
fn parquet_files_of_pandas_are_read() {
    let options = ReadOptions { features: FeatureColumns::Rest, ..ReadOptions::default() };
    let stream = read(&sample("pandas.parquet"), &options).unwrap();
    assert_eq!(rows(&stream), [row("bob", "alice", 1_704_067_200.5), row("alice", "carol", 1_704_067_202.0)]);
    assert_eq!(stream.edge_features().unwrap().values(), [1.5, 2.5]);
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, bytes).unwrap();
    packed.finish().unwrap()
}

/// A stream with all optional columns, derived from `rows`.
fn full_stream(rows: &[(u32, u32, f64)], ids: IdKind, bipartite: bool, width: u8, with_nodes: bool) -> EventStream {
    let mut builder = StreamBuilder::new(ids, bipartite, false);
    for (index, (src, dst, time)) in (0u8..).zip(rows) {
        let name = |node: &u32| if ids == IdKind::Text { format!("n {node},") } else { (node * 1_000_003).to_string() };
        builder.push(name(src).as_bytes(), name(dst).as_bytes(), *time, f32::from(index % 2)).unwrap();
        let features: Vec<f32> = (0..width).map(|at| f32::from(index) - f32::from(at) * 0.37).collect();
        builder.push_features(features.into_iter()).unwrap();
    }
    let mut columns = builder.finish(None).unwrap().into_columns();
    if with_nodes {
        let values: Vec<f32> = (0u8..).take(2 * columns.names.len()).map(f32::from).collect();
        columns.node_features = Some(Features::new(2, values).unwrap());
    }
    EventStream::new(columns).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn written_streams_are_read_back(
        rows in edge_cases::rows(30), text: bool, bipartite: bool, width in 0u8..4, with_nodes: bool,
    ) {
        let ids = if text { IdKind::Text } else { IdKind::Integer };
        let stream = full_stream(&rows, ids, bipartite, width, with_nodes);
        let folder = tempfile::tempdir().unwrap();
        let shared = stream.src().iter().any(|src| stream.dst().iter().any(|dst| {
            src != dst && stream.names().name(*src) == stream.names().name(*dst)
        }));
        for name in ["a.csv", "b.tsv.gz", "c.csv.zst", "d.parquet", "e.ctdg"] {
            let path = folder.path().join(name);
            let format = WriteFormat::of_path(&path).unwrap();
            let written = write(&stream, &path, format);
            let is_text = matches!(format, WriteFormat::Text(_));
            if is_text && shared && text {
                prop_assert!(matches!(written.unwrap_err().problem(), Problem::SharedNames));
                continue;
            }
            written.unwrap();
            let found = read(&path, &ReadOptions { ids, ..ReadOptions::default() }).unwrap();
            // One namespace, but the same graph.
            if is_text && bipartite && text {
                prop_assert_eq!(self::rows(&found), self::rows(&stream));
            } else if is_text && bipartite {
                prop_assert_eq!((found.dst(), found.times()), (stream.dst(), stream.times()));
                prop_assert_eq!((found.src(), found.n_nodes()), (stream.src(), stream.n_nodes()));
                prop_assert_eq!(found.node_features(), stream.node_features());
            } else {
                prop_assert_eq!(&found, &stream, "{}", name);
            }
        }
        for (plain, packed) in [("d.parquet", "packed.parquet.gz"), ("e.ctdg", "packed.ctdg.zst")] {
            let bytes = std::fs::read(folder.path().join(plain)).unwrap();
            let bytes = if packed.ends_with("gz") { gzipped(&bytes) } else { zstd::encode_all(&bytes[..], 1).unwrap() };
            let path = folder.path().join(packed);
            std::fs::write(&path, bytes).unwrap();
            let mut columns = read(&path, &ReadOptions::default()).unwrap().into_columns();
            // Node features of Parquet are in a sidecar of another name.
            columns.node_features = stream.node_features().cloned();
            prop_assert_eq!(&EventStream::new(columns).unwrap(), &stream, "{}", packed);
        }
        let path = folder.path().join("d.parquet");
        prop_assert_eq!(read(&path, &ReadOptions::default()).unwrap(), stream, "Parquet records bipartiteness");
    }
}

#[test]
fn failed_write_leaves_no_file() {
    let stream = EventStream::from_events([(0, 1, 1.0)]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let error = write(&stream, &folder.path().join("no/such/folder.csv"), WriteFormat::Text(b',')).unwrap_err();
    assert!(error.to_string().contains("could not write"), "{error}");
    assert!(WriteFormat::of_path(Path::new("x.docx")).is_err());
    assert!(WriteFormat::of_path(Path::new("x.parquet.gz")).is_err(), "Parquet is compressed internally");
    // The destination is a folder: the temporary file must be removed.
    let occupied = folder.path().join("occupied.csv");
    std::fs::create_dir(&occupied).unwrap();
    assert!(write(&stream, &occupied, WriteFormat::Text(b',')).is_err());
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["occupied.csv"]);
}

#[test]
fn dyglib_features_follow_their_events_when_sorted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ml_x.csv");
    std::fs::copy(sample("ml_toy.npy"), folder.path().join("ml_x.npy")).unwrap();
    std::fs::write(&path, ",u,i,ts,label,idx\n0,1,2,5,0,1\n1,2,3,3,0,2\n2,1,3,4,0,3\n").unwrap();
    let stream = read(&path, &ReadOptions { sort: true, ..ReadOptions::default() }).unwrap();
    assert_eq!(stream.times(), [3.0, 4.0, 5.0]);
    assert_eq!(stream.edge_features().unwrap().values(), [3.0, 4.0, 5.0, 6.0, 1.0, 2.0]);
    // The column idx decides, not the row of the file.
    std::fs::write(&path, ",u,i,ts,label,idx\n0,1,2,3,0,3\n1,2,3,4,0,2\n2,1,3,5,0,1\n").unwrap();
    let stream = read(&path, &ReadOptions::default()).unwrap();
    assert_eq!(stream.edge_features().unwrap().values(), [5.0, 6.0, 3.0, 4.0, 1.0, 2.0]);
}

#[test]
fn header_detection_uses_the_chosen_time_column() {
    let at = |position| Some(ColumnRef::Position(position));
    let options = ReadOptions { src: at(1), dst: at(2), time: at(4), ..ReadOptions::default() };
    assert_eq!(parse("x.csv", "alice,bob,hi,1\nbob,carl,yo,2\n", &options).len(), 2);
}

#[test]
fn extra_fields_and_empty_ids_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    for (text, expected) in [
        ("src,dst,time\n1,2,3\n1,2,3,5\n", "line 3: found 4 fields, expected 3"),
        ("src,dst,time\na,b,1\na,,2\n", "line 3, column 2 (dst): found an empty field, expected a node id"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = read(&path, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn parquet_logical_types_are_respected() {
    let stream = read(&sample("types.parquet"), &ReadOptions::default()).unwrap();
    assert_eq!(rows(&stream), [row("3000000000", "1", 86_400.0), row("3000000001", "2", 172_800.0)]);
    let read_time = |name: &str| {
        let options = ReadOptions { time: Some(ColumnRef::Name(name.into())), ..ReadOptions::default() };
        read(&sample("types.parquet"), &options).map(|stream| stream.times().to_vec())
    };
    assert_eq!(read_time("unsigned").unwrap(), [3_000_000_000.0, 3_000_000_001.0]);
    assert_eq!(read_time("millis").unwrap(), [1.001, 2.0]);
    assert!(read_time("decimal").unwrap_err().to_string().contains("found values of type decimals"));
    let text = read(&sample("text_ids.parquet"), &ReadOptions::default()).unwrap();
    assert_eq!(rows(&text), [row("10", "7", 1.0), row("7", "b", 2.0)], "the column type decides, not the first row");
}

#[test]
fn stale_feature_sidecar_is_refused_when_writing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    write(&full_stream(&[(0, 1, 1.0)], IdKind::Integer, false, 0, true), &path, WriteFormat::Text(b',')).unwrap();
    let plain = EventStream::from_events([(0, 1, 1.0)]).unwrap();
    let error = write(&plain, &path, WriteFormat::Text(b',')).unwrap_err();
    assert!(matches!(error.problem(), Problem::StraySidecar), "{error}");
    assert!(read(&path, &ReadOptions::default()).unwrap().node_features().is_some(), "and nothing was written");
}

#[cfg(unix)]
#[test]
fn links_and_permissions_are_kept_and_pipes_are_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real.csv"), folder.path().join("link.csv"));
    let stream = EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0)]).unwrap();
    std::fs::write(&real, "old").unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    write(&stream, &link, WriteFormat::Text(b',')).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(read(&real, &ReadOptions::default()).unwrap(), stream);
    write(&stream, Path::new("/dev/null"), WriteFormat::Text(b',')).unwrap();
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file(), "a device stays a device");

    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let text = std::fs::read(&real).unwrap();
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, text).unwrap()
    });
    assert_eq!(read(&pipe, &ReadOptions::default()).unwrap(), stream);
    writer.join().unwrap();
}

#[test]
fn read_options_survive_json_and_missing_fields_take_defaults() {
    let options = ReadOptions {
        format: Format::DyGLib,
        src: Some(ColumnRef::Name("4".into())),
        time: Some(ColumnRef::Position(4)),
        features: FeatureColumns::Chosen(vec![ColumnRef::Position(5), ColumnRef::Name("w".into())]),
        header: Some(false),
        delimiter: Some(b'\t'),
        ids: IdKind::Text,
        bipartite: Some(true),
        sort: true,
        ..ReadOptions::default()
    };
    let json = serde_json::to_string(&options).unwrap();
    assert_eq!(serde_json::from_str::<ReadOptions>(&json).unwrap(), options);
    assert!(json.contains(r#""format":"dyglib","src":"4","dst":null,"time":4"#), "{json}");
    assert_eq!(serde_json::from_str::<ReadOptions>("{}").unwrap(), ReadOptions::default());
    for refused in [r#"{"src": 0}"#, r#"{"sorted": true}"#, r#"{"delimiter": "ab"}"#] {
        assert!(serde_json::from_str::<ReadOptions>(refused).is_err(), "{refused}");
    }
}

#[test]
fn progress_ends_with_the_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    let text = "src,dst,time\n1,2,3\n";
    std::fs::write(&path, text).unwrap();
    let calls = std::cell::RefCell::new(Vec::new());
    let stream = read_with_progress(&path, &ReadOptions::default(), &|done, total| {
        calls.borrow_mut().push((done, total));
    });
    assert_eq!(stream.unwrap().len(), 1);
    let n = text.len() as u64;
    assert_eq!(calls.borrow().last(), Some(&(n, n)));
}

/// `saved.ctdg` was written from `saved.csv` by version 0.1.0 and must stay readable.
#[test]
fn binary_file_of_an_earlier_version_is_read_with_all_columns() {
    let stream = read(&sample("saved.ctdg"), &ReadOptions::default()).unwrap();
    let names: Vec<String> = (0..4).map(|node| stream.names().name(NodeId(node))).collect();
    assert_eq!(names, ["ann", "bob", "eve", "çelik"], "bytewise order");
    assert_eq!(stream.src(), [0, 1, 0, 2, 1].map(NodeId));
    assert_eq!(stream.dst(), [1, 3, 3, 0, 0].map(NodeId));
    assert_eq!(stream.times(), [1.0, 2.5, 2.5, 4.0, 6.125]);
    assert_eq!(stream.labels(), [0.0, 1.0, 0.0, 1.0, 0.0]);
    let edges = stream.edge_features().unwrap();
    assert_eq!((edges.width(), edges.values()), (2, &[0.5, -1.0, 1.5, 2.0, 0.0, 0.25, -3.0, 8.0, 1.0, 1.0][..]));
    let nodes = stream.node_features().unwrap();
    assert_eq!((nodes.width(), nodes.values()), (1, &[1.0, 2.0, 4.0, 8.0][..]));
    assert_eq!(stream.names().n_sources(), None);
    assert_eq!(read(&sample("saved.csv"), &ReadOptions::default()).unwrap(), stream);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("again.ctdg");
    write(&stream, &path, WriteFormat::Binary).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), std::fs::read(sample("saved.ctdg")).unwrap(), "the format is unchanged");
}
