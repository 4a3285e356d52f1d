//! The table that the bench prints.

/// One measure: the figure, its floor, and what it should reach.
pub(crate) struct Row {
    measure: String,
    figure: String,
    floor: String,
    result: String,
    reach: &'static str,
}

impl Row {
    pub(crate) fn new(measure: impl Into<String>, figure: impl Into<String>) -> Self {
        let (measure, figure) = (measure.into(), figure.into());
        Self { measure, figure, floor: String::new(), result: String::new(), reach: "" }
    }

    pub(crate) fn against(mut self, what: &str, figure: impl Into<String>) -> Self {
        self.floor = format!("{what}: {}", figure.into());
        self
    }

    pub(crate) fn verdict(mut self, result: impl Into<String>, reach: &'static str) -> Self {
        (self.result, self.reach) = (result.into(), reach);
        self
    }
}

/// Says which part begins. The table comes at the end, so a part that never ends is known by this.
#[expect(clippy::print_stderr, reason = "progress, beside the table")]
pub(crate) fn begin(part: &str) {
    eprintln!("measuring {part}");
}

/// Says why a part has no figures.
#[expect(clippy::print_stderr, reason = "the reason of the exit code, beside the table")]
pub(crate) fn failed(part: &str, error: &anyhow::Error) {
    eprintln!("error: the part `{part}` failed: {error:#}");
}

/// Prints the rows as a table in markdown.
#[expect(clippy::print_stdout, reason = "this table is what the program is for")]
pub(crate) fn print(rows: &[Row]) {
    println!("| measure | figure | floor of the same run | result | reach |");
    println!("| --- | --- | --- | --- | --- |");
    for Row { measure, figure, floor, result, reach } in rows {
        println!("| {measure} | {figure} | {floor} | {result} | {reach} |");
    }
}
