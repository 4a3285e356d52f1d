//! The interpreter: one runtime, one context, and the running of a script in it.

use std::cell::RefCell;
use std::rc::Rc;

use belljar_guest::{Output, ToolError, ToolResult};
use rquickjs::context::EvalOptions;
use rquickjs::{
    CatchResultExt as _, CaughtError, Context, Ctx, Exception, Function, Object, Persistent,
    Promise, Runtime, Value,
};

use crate::answer::Printed;
use crate::{calls, random, scope};

/// Bytes of stack that scripts may use. Each takes many more of the machine's stack, which the host
/// bounds: with this much, recursion ends as a RangeError before it ends as a trap.
const STACK: usize = 40 << 10;

/// Bytes of JavaScript values: less than a jar has by default, so that a script which needs more ends
/// with an error that it can catch, and keeps its variables.
const MEMORY: usize = 192 << 20;

/// The name of the script in stack traces.
const SCRIPT: &str = "script";

/// A script that is run when the component is built.
#[cfg(target_family = "wasm")]
const FIRST: &str = "console.log(1); [1].map((n) => n + 1)";

const PRELUDE: &str = include_str!("prelude.js");

/// An interpreter with the standard functions in it.
pub(crate) struct Engine {
    // Dropped in this order: a value must not outlive its runtime.
    /// A value as text.
    show: Persistent<Function<'static>>,
    /// An exception as text.
    explain: Persistent<Function<'static>>,
    context: Context,
    #[cfg_attr(not(target_family = "wasm"), allow(dead_code, reason = "keeps the context alive"))]
    runtime: Runtime,
    printed: Rc<RefCell<Printed>>,
    random: random::State,
}

impl Engine {
    pub(crate) fn new() -> rquickjs::Result<Engine> {
        let runtime = Runtime::new()?;
        runtime.set_max_stack_size(STACK);
        runtime.set_memory_limit(MEMORY);
        let context = Context::full(&runtime)?;
        let printed = Rc::new(RefCell::new(Printed::default()));
        let (show, explain, random) = context.with(|ctx| {
            let natives = Object::new(ctx.clone())?;
            calls::add_to(&natives)?;
            let random = random::add_to(&natives)?;
            let sink = Rc::clone(&printed);
            let print = move |line: String| sink.borrow_mut().line(&line);
            natives.set("print", Function::new(ctx.clone(), print)?)?;
            let mut options = EvalOptions::default();
            options.filename = Some("belljar".to_owned());
            let prelude: Function<'_> = ctx.eval_with_options(code_of(PRELUDE), options)?;
            let own: Object<'_> = prelude.call((natives,))?;
            let function = |name| {
                let function: Function<'_> = own.get(name)?;
                Ok::<_, rquickjs::Error>(Persistent::save(&ctx, function))
            };
            Ok::<_, rquickjs::Error>((function("show")?, function("explain")?, random))
        })?;
        Ok(Engine { show, explain, context, runtime, printed, random })
    }

    /// Before the memory becomes a part of the component: a script runs, so that the first of a store
    /// finds what is set up once. What was needed to get here, and is not any more, becomes zeros, which
    /// take no room there.
    #[cfg(target_family = "wasm")]
    pub(crate) fn settle(&mut self) {
        let _ = self.run(FIRST);
        self.runtime.run_gc();
        // A collection looks at all values, so writes to nearly all memory: the first comes when there
        // is half as much again.
        let used = usize::try_from(self.runtime.memory_usage().malloc_size).unwrap_or_default();
        self.runtime.set_gc_threshold(used + used / 2);
        for size in [64 << 10, 16 << 10, 4 << 10, 1 << 10] {
            // Whoever allocates takes what was freed first. Zeroed, and given back.
            let blocks: Vec<Vec<u8>> = (0..(128 << 10) / size).map(|_| vec![0; size]).collect();
            std::hint::black_box(&blocks);
        }
    }

    /// Runs a script: what it printed and its value, or the exception that ended it.
    pub(crate) fn run(&mut self, code: &str) -> ToolResult {
        self.printed.take();
        self.random.set(None);
        let script = scope::persistent(code);
        let ended = self.context.with(|ctx| {
            let value = evaluate(&ctx, script).and_then(|value| self.shown(&ctx, value));
            value.catch(&ctx).map_err(|error| self.explained(&ctx, error))
        });
        let printed = self.printed.take();
        match ended {
            Ok(value) => Ok(Output::text(printed.with_value(value.as_deref()))),
            Err(text) => Err(ToolError::Failed(printed.with_error(&text))),
        }
    }

    /// A value as the model reads it; nothing for `undefined`.
    fn shown<'js>(&self, ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Option<String>> {
        if value.is_undefined() {
            return Ok(None);
        }
        self.show.clone().restore(ctx)?.call((value,)).map(Some)
    }

    /// An exception as the model reads it: its name, its message, and the lines of the script.
    fn explained<'js>(&self, ctx: &Ctx<'js>, error: CaughtError<'js>) -> String {
        let thrown = match error {
            CaughtError::Exception(exception) => exception.into_object().into_value(),
            CaughtError::Value(value) => value,
            CaughtError::Error(error) => return error.to_string(),
        };
        let explain = self.explain.clone().restore(ctx);
        let text = explain.and_then(|explain| explain.call::<_, String>((thrown,)));
        // A thrown object can fail to be shown: its `message` may throw itself.
        text.catch(ctx).unwrap_or_else(|_| "an exception that cannot be shown".to_owned())
    }
}

/// A script of this component without its comments and indentation: the interpreter keeps the text of
/// each function.
fn code_of(script: &str) -> String {
    let lines = script.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn evaluate<'js>(ctx: &Ctx<'js>, script: String) -> rquickjs::Result<Value<'js>> {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.promise = true;
    options.filename = Some(SCRIPT.to_owned());
    let promise: Promise<'js> = ctx.eval_with_options(script, options)?;
    // The jobs of promises; a script that makes them for ever is ended by the host.
    while ctx.execute_pending_job() {}
    match promise.result::<Object<'js>>() {
        // The value of an asynchronous script is in an object of its own.
        Some(result) => settled(ctx, result?.get("value")?),
        None => Err(Exception::throw_message(
            ctx,
            "the script waits for a promise that nothing settles",
        )),
    }
}

/// The result of a promise, where the script's value is one.
fn settled<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Value<'js>> {
    let Some(promise) = value.as_promise().cloned() else { return Ok(value) };
    while ctx.execute_pending_job() {}
    promise.result::<Value<'js>>().unwrap_or(Ok(value))
}
