//! `regcomp(3)` and its relatives, behind an interface that can't be misused. The only unsafe code of the rules.
use std::ffi::CString;
use std::fmt;
use std::mem::MaybeUninit;

/// A compiled expression: extended, in the C locale unless the process sets another, with its groups.
pub(crate) struct Compiled {
    /// Boxed, so that it is never moved after compilation.
    inner: Box<libc::regex_t>,
    groups: usize,
}

// SAFETY: POSIX makes `regexec` safe for threads that share a compiled expression: its parameter is constant,
// and an implementation that keeps state in it (glibc) locks that state. Freeing takes `&mut`.
unsafe impl Send for Compiled {}
// SAFETY: as above.
unsafe impl Sync for Compiled {}

impl Compiled {
    /// Compiles an expression; the error is the library's.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let groups = count_groups(text);
        let Ok(text) = CString::new(text) else { return Err("there is a zero byte in it".to_owned()) };
        let mut room = Box::new(MaybeUninit::<libc::regex_t>::zeroed());
        // SAFETY: the text ends in a zero byte and outlives the call; the room has the size of a `regex_t`.
        let answer = unsafe { libc::regcomp(room.as_mut_ptr(), text.as_ptr(), libc::REG_EXTENDED) };
        if answer != 0 {
            return Err(words(answer, &room));
        }
        // SAFETY: `regcomp` answered 0, so it has filled the room.
        let inner = unsafe { room.assume_init() };
        Ok(Self { inner, groups })
    }

    pub(crate) fn group_count(&self) -> usize {
        self.groups
    }

    pub(crate) fn matches(&self, id: &str) -> bool {
        self.run(id, &mut [])
    }

    /// The byte ranges of the whole match and of the groups in `id`.
    pub(crate) fn groups(&self, id: &str) -> Option<Vec<Option<(usize, usize)>>> {
        let mut places = vec![libc::regmatch_t { rm_so: -1, rm_eo: -1 }; self.group_count() + 1];
        let range = |place: &libc::regmatch_t| {
            Some((usize::try_from(place.rm_so).ok()?, usize::try_from(place.rm_eo).ok()?))
        };
        self.run(id, &mut places).then(|| places.iter().map(range).collect())
    }

    fn run(&self, id: &str, places: &mut [libc::regmatch_t]) -> bool {
        let end = id.bytes().position(|byte| byte == 0).unwrap_or(id.len());
        let Ok(text) = CString::new(id.get(..end).unwrap_or_default()) else { return false };
        // SAFETY: the expression is compiled; the text ends in a zero byte; the count is that of `places`.
        let answer = unsafe {
            libc::regexec(&raw const *self.inner, text.as_ptr(), places.len(), places.as_mut_ptr(), 0)
        };
        answer == 0
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        // SAFETY: it is compiled, and freed only here.
        unsafe { libc::regfree(&raw mut *self.inner) }
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").field("groups", &self.group_count()).finish_non_exhaustive()
    }
}

/// Counts the groups of an expression that the library accepted. The library's own count is private in the bindings.
fn count_groups(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut groups) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        at = match byte {
            b'\\' => at + 2,
            b'[' => behind_bracket(bytes, at + 1),
            _ => at + 1,
        };
        groups += usize::from(*byte == b'(');
    }
    groups
}

/// The end of a bracket expression. `]` is an ordinary character in first place, and `[:`, `[.` and `[=` have
/// ends of their own.
fn behind_bracket(bytes: &[u8], begin: usize) -> usize {
    let first = begin + usize::from(bytes.get(begin) == Some(&b'^'));
    let mut at = first;
    while let Some(byte) = bytes.get(at) {
        match (byte, bytes.get(at + 1)) {
            (b']', _) if at > first => return at + 1,
            (b'[', Some(kind @ (b':' | b'.' | b'='))) => {
                let rest = bytes.get(at + 2..).unwrap_or_default();
                let end = rest.windows(2).position(|pair| pair == [*kind, b']']);
                at = end.map_or(bytes.len(), |end| at + 2 + end + 2);
            }
            _ => at += 1,
        }
    }
    at
}

/// The library's message for an error.
fn words(answer: libc::c_int, room: &MaybeUninit<libc::regex_t>) -> String {
    let mut text = [0u8; 128];
    // SAFETY: the library writes at most the given number of bytes, with a zero byte at their end; of the room it
    // reads only the contents that `regcomp` left there.
    unsafe { libc::regerror(answer, room.as_ptr(), text.as_mut_ptr().cast(), text.len()) };
    let end = text.iter().position(|byte| *byte == 0).unwrap_or_default();
    String::from_utf8_lossy(text.get(..end).unwrap_or_default()).into_owned()
}
