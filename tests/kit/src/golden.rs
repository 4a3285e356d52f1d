//! Golden files: what others read of belljar, to the byte, reviewed as data.

/// Holds a text against the golden file of this name, in the folder `golden` beside the test. Tests of such
/// files have `golden` in their names: `INSTA_UPDATE=always cargo test golden` writes all files anew, and the
/// difference in git is what is reviewed.
///
/// # Examples
///
/// ```no_run
/// let words = ["one", "two"];
/// belljar_kit::golden!("words", words.join("\n"));
/// ```
#[macro_export]
macro_rules! golden {
    ($name:expr, $text:expr $(,)?) => {
        $crate::insta::with_settings!(
            { snapshot_path => "golden", prepend_module_to_snapshot => false, omit_expression => true },
            { $crate::insta::assert_snapshot!($name, $text) }
        )
    };
}

/// Examples of an enum, at least one of each variant: a new variant does not compile before it has one.
///
/// # Examples
///
/// ```
/// let all = belljar_kit::one_of_each!(Option<u8> {
///     None => [None],
///     Some(_) => [Some(1), Some(2)],
/// });
/// assert_eq!(all.len(), 3);
/// ```
#[macro_export]
macro_rules! one_of_each {
    ($of:ty { $($variant:pat => [$($example:expr),+ $(,)?]),+ $(,)? }) => {{
        let _each = |one: &$of| match one { $($variant => (),)+ };
        let all: ::std::vec::Vec<$of> = ::std::vec![$($($example),+),+];
        all
    }};
}
