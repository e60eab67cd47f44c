//! Events as users hold them: a stream, its name, and how it was read.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ctdg::dataset::{self, ReadOptions};
use ctdg::error::Place;
use ctdg::event::{EventId, EventStream, IdKind, NameLookup, Prefix, StreamBuilder};
use ctdg::live::Snapshot;

use crate::Result;

/// A stream of interactions (source, destination, time). Cheap to clone.
///
/// Dereferences to [`EventStream`], which has the columns.
///
/// ```
/// use hopedgn::Events;
///
/// let events = Events::from_tuples([("ann", "bob", 1.0), ("bob", "cem", 2.0), ("ann", "cem", 2.5)])?;
/// assert_eq!((events.len(), events.n_nodes()), (3, 3));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Events {
    stream: Arc<EventStream>,
    name: Arc<str>,
    file: Option<Arc<Path>>,
    options: Arc<ReadOptions>,
    /// Built at the first lookup, shared by clones.
    lookup: Arc<OnceLock<NameLookup>>,
}

impl Events {
    /// Reads a file of any known format: CSV, TSV, Parquet, JODIE, TGB, KONECT, DyGLib or `.ctdg`, plain or compressed.
    ///
    /// ```
    /// # use hopedgn::Events;
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("events.csv");
    /// std::fs::write(&file, "src,dst,time\nann,bob,1\nbob,cem,2\n")?;
    /// let events = Events::read(&file)?;
    /// assert_eq!((events.len(), events.n_nodes()), (2, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Self::read_with(path, &ReadOptions::default())
    }

    /// Reads a file as `options` say, e.g. with other column names.
    ///
    /// ```
    /// use hopedgn::{Events, ReadOptions};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("mail.csv");
    /// std::fs::write(&file, "when,from,to\n1,ann,bob\n2,bob,cem\n")?;
    /// let mut options = ReadOptions::default();
    /// (options.src, options.dst, options.time) = (Some("from".parse()?), Some("to".parse()?), Some("when".parse()?));
    /// let events = Events::read_with(&file, &options)?;
    /// assert_eq!((events.len(), events.times()), (2, &[1.0, 2.0][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self> {
        let path = path.as_ref();
        let stream = dataset::read(path, options)?;
        Ok(Self::from_stream(path.display().to_string(), stream).with_source(path, options))
    }

    /// The bundled dataset: 59,835 private messages of a university's online community (the dataset also known as UCI).
    ///
    /// ```
    /// let events = hopedgn::Events::collegemsg()?;
    /// assert_eq!((events.name(), events.len(), events.n_nodes()), ("collegemsg", 59_835, 1_899));
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn collegemsg() -> Result<Self> {
        Ok(Self::from_stream(dataset::COLLEGEMSG, dataset::collegemsg()?))
    }

    /// Events in memory, in order of time. Ids are names; integers may be written as text.
    ///
    /// ```
    /// use hopedgn::Events;
    ///
    /// let events = Events::from_tuples([("1", "2", 0.5), ("2", "3", 0.5)])?;
    /// assert_eq!(events.names().integer(events.dst()[1]), Some(3));
    /// let error = Events::from_tuples([("1", "2", 0.5), ("2", "3", 0.0)]).unwrap_err();
    /// assert!(error.to_string().contains("0.5"), "{error}"); // times must not go backwards
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn from_tuples<S, D>(events: impl IntoIterator<Item = (S, D, f64)>) -> Result<Self>
    where
        S: AsRef<str>,
        D: AsRef<str>,
    {
        let events: Vec<(S, D, f64)> = events.into_iter().collect();
        // Written as numbers are, so that "007" and "7" stay two ids.
        let is_integer = |id: &str| id.parse::<u64>().is_ok_and(|number| number.to_string() == id);
        let are_integers = events.iter().all(|(src, dst, _)| is_integer(src.as_ref()) && is_integer(dst.as_ref()));
        let ids = if are_integers { IdKind::Integer } else { IdKind::Text };
        let mut builder = StreamBuilder::new(ids, false, false);
        for (row, (src, dst, time)) in events.iter().enumerate() {
            let pushed = builder.push(src.as_ref().as_bytes(), dst.as_ref().as_bytes(), *time, 0.0);
            pushed.map_err(|rejected| ctdg::Error::at(Place::default().row(row as u64), *rejected.problem))?;
        }
        Ok(Self::from_stream("events", builder.finish(None)?))
    }

    /// A stream that is there, under a name.
    ///
    /// ```
    /// use hopedgn::{Events, ctdg::event::EventStream};
    ///
    /// let events = Events::from_stream("toy", EventStream::from_events([(0, 1, 10.0), (1, 2, 20.0)])?);
    /// assert_eq!((events.name(), events.n_nodes()), ("toy", 3));
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    #[must_use]
    pub fn from_stream(name: impl Into<Arc<str>>, stream: EventStream) -> Self {
        Self {
            stream: Arc::new(stream),
            name: name.into(),
            file: None,
            options: Arc::default(),
            lookup: Arc::default(),
        }
    }

    /// The events of a live stream at one time.
    pub(crate) fn of_snapshot(name: &str, snapshot: &Snapshot) -> Self {
        let lookup = OnceLock::from(snapshot.lookup().clone());
        Self { lookup: Arc::new(lookup), ..Self::from_stream(name, snapshot.stream().clone()) }
    }

    /// The first `n` events alone, as if nothing had been appended: their nodes are numbered as in a file that ends there.
    ///
    /// ```
    /// use hopedgn::Events;
    ///
    /// let events = Events::from_tuples([("bob", "eve", 1.0), ("eve", "bob", 2.0), ("ann", "bob", 3.0)])?;
    /// let known = events.prefix(2)?;
    /// assert_eq!((known.len(), known.n_nodes(), known.name()), (2, 2, events.name()));
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn prefix(&self, n: usize) -> Result<Self> {
        Ok(self.with_stream(self.stream.prefix(n)?.stream))
    }

    /// Some events alone, in ascending order, as if nothing else had happened: nodes are numbered as in a file of these rows. They are
    /// said to come from no file.
    ///
    /// ```
    /// use hopedgn::{Events, ctdg::event::EventId};
    ///
    /// let events = Events::from_tuples([("bob", "eve", 1.0), ("eve", "bob", 2.0), ("ann", "bob", 3.0)])?;
    /// let last = events.select(&[EventId(2)])?;
    /// assert_eq!((last.len(), last.n_nodes(), last.name()), (1, 2, events.name()));
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn select(&self, events: &[EventId]) -> Result<Self> {
        Ok(Self { file: None, options: Arc::default(), ..self.with_stream(self.stream.select(events)?) })
    }

    /// [`Events::prefix`], with the numbers of its nodes in the whole stream.
    pub(crate) fn prefix_stream(&self, n: usize) -> Result<Prefix> {
        Ok(self.stream.prefix(n)?)
    }

    /// Other events under the same name and source.
    pub(crate) fn with_stream(&self, stream: EventStream) -> Self {
        Self { stream: Arc::new(stream), lookup: Arc::default(), ..self.clone() }
    }

    /// The same events, said to come from `file` read with `options`. A run records both, so that it can be resumed.
    ///
    /// ```
    /// use hopedgn::{Events, ReadOptions};
    ///
    /// let events = Events::from_tuples([("a", "b", 1.0)])?.with_source("mail.csv".as_ref(), &ReadOptions::default());
    /// assert!(events.file().is_some_and(|file| file.is_absolute() && file.ends_with("mail.csv")));
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    #[must_use]
    pub fn with_source(self, file: &Path, options: &ReadOptions) -> Self {
        let file = std::path::absolute(file).unwrap_or_else(|_| PathBuf::from(file));
        Self { file: Some(file.into()), options: Arc::new(options.clone()), ..self }
    }

    /// The same events under another name.
    ///
    /// ```
    /// let events = hopedgn::Events::from_tuples([("a", "b", 1.0)])?.named("mail");
    /// assert_eq!(events.name(), "mail");
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    #[must_use]
    pub fn named(self, name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// The name of the dataset, or its file as it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The absolute path of the file, if the events were read from one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// How the file was read.
    #[must_use]
    pub fn read_options(&self) -> &ReadOptions {
        &self.options
    }

    /// The table of node names, built once.
    pub(crate) fn lookup(&self) -> Result<&NameLookup> {
        if let Some(lookup) = self.lookup.get() {
            return Ok(lookup);
        }
        let lookup = self.names().lookup()?;
        Ok(self.lookup.get_or_init(|| lookup))
    }
}

impl Deref for Events {
    type Target = EventStream;

    fn deref(&self) -> &EventStream {
        &self.stream
    }
}
