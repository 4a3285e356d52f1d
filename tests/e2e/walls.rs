//! The OS sandbox around the real binary. Every other test here runs behind it too.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::Child;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::cancel::{hanging, hanging_with};
use crate::kit::{Done, World};
use crate::run::{TASK, world};

/// A field of what the system says of a process.
pub(crate) fn status(process: u32, field: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

/// The processes that this one has started and that are there.
fn children(process: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter(|number| status(*number, "PPid") == process.to_string()).collect()
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_run_is_behind_the_wall_and_its_broker_is_not_and_ends_with_it() {
    let world = World::new();
    let child = hanging(&world);
    assert_eq!(status(child.id(), "Seccomp"), "2");
    assert_eq!(status(child.id(), "NoNewPrivs"), "1");
    for thread in fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten() {
        // One that has ended meanwhile is outside of nothing.
        let Ok(text) = fs::read_to_string(thread.path().join("status")) else { continue };
        assert!(text.contains("Seccomp:\t2"), "a thread is outside:\n{text}");
    }
    let broker = children(child.id());
    let [broker] = broker[..] else { panic!("not one broker: {broker:?}") };
    assert_eq!((status(broker, "Seccomp"), status(broker, "NoNewPrivs")), ("0".into(), "0".into()));
    let broker = Pid::from_raw(i32::try_from(broker).unwrap()).unwrap();
    let broker = pidfd_open(broker, PidfdFlags::empty()).unwrap();
    // Killed outright, so that it cannot tell the broker anything.
    end(child);
    let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
    let ended = poll(&mut [PollFd::new(&broker, PollFlags::IN)], Some(&limit)).unwrap();
    assert_eq!(ended, 1, "the broker lives on");
}

#[test]
fn the_option_leaves_the_wall_out_with_a_warning() {
    let (world, transcript) = world();
    let args = ["run", "--transcript", &transcript, TASK];
    let with = world.run(&args).exits(0);
    assert!(!with.stderr.contains("OS sandbox"), "{}", with.stderr);
    let without = world.run(&[&args[..], &["--no-os-sandbox"]].concat()).exits(0);
    assert_eq!(without.stdout, with.stdout);
    without.complains("warning: the OS sandbox is switched off by `--no-os-sandbox`");
    let child = hanging_with(&world, &["--no-os-sandbox"]);
    assert_eq!(status(child.id(), "Seccomp"), "0");
    assert!(children(child.id()).is_empty(), "without a wall nothing needs a broker");
    end(child);
}

#[test]
fn doctor_reports_it() {
    let world = World::new();
    let wall = |args: &[&str]| {
        let checks = world.run(args).json();
        let checks = checks.as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "OS sandbox").unwrap()
    };
    let up = wall(&["doctor", "--json"]);
    // An older kernel has less of it, and then the details say what.
    assert_eq!(up["finding"] == "good", up.get("details").is_none(), "{up}");
    let text = up["text"].as_str().unwrap();
    assert!(text.contains("landlock") && text.contains("seccomp"), "{text}");
    let off = wall(&["doctor", "--json", "--no-os-sandbox"]);
    assert_eq!(off["finding"], "note");
    assert!(off["details"][0].as_str().unwrap().contains("--no-os-sandbox"), "{off}");
}

#[test]
fn a_hook_command_runs_outside_and_is_heard() {
    let (world, transcript) = world();
    // It copies one file beside the workspace to another: the run itself may open neither.
    let hook = "cat > /dev/null; cp ../secret.txt ../copied.txt";
    let settings = format!("[[hooks]]\nevent = \"PreToolUse\"\ncommand = \"{hook}\"\n");
    world.home_file("belljar.toml", &settings);
    world.run(&["run", "--transcript", &transcript, TASK]).exits(0);
    let copied = world.workspace().join("../copied.txt");
    assert_eq!(fs::read_to_string(copied).unwrap(), "nobody may read this");
    let denying = settings.replace("cat > /dev/null;", "echo no >&2; exit 2;");
    world.home_file("belljar.toml", &denying);
    let run = world.run(&["run", "--json", "--transcript", &transcript, TASK]);
    assert!(run.stdout.contains("no"), "{}", run.stdout);
    assert_ne!(run.code, 0, "the transcript expects what the hook keeps from happening");
}

/// A world with a component that belljar does not bring along: a hook that passes everything.
fn world_with_a_component() -> (World, String) {
    let (world, transcript) = world();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let hook = root.join("guest-sdk/examples/hook-guard/hook_guard.wasm");
    let settings =
        format!("[[hooks]]\nevent = \"PreToolUse\"\ncomponent = \"{}\"\n", hook.display());
    world.home_file("belljar.toml", &settings);
    (world, transcript)
}

#[test]
fn components_are_compiled_where_nothing_is_cached() {
    let (world, transcript) = world_with_a_component();
    let cache = world.home().join("own-cache");
    let mut command = world.command(&["run", "--transcript", &transcript, TASK]);
    let output = command.env("BELLJAR_CACHE", &cache).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let compiled = fs::read_dir(cache).unwrap().flatten();
    let compiled = compiled.filter(|e| e.path().extension().is_some_and(|end| end == "cwasm"));
    assert!(compiled.count() >= 1);
}

#[test]
fn the_wall_is_as_wide_as_the_grants() {
    let world = World::new();
    let data = world.other("data/in.txt", b"some data");
    let data = data.parent().unwrap();
    let mounts = format!(
        "[grants.general-purpose]\ntools = ['file_read', 'file_write']\n\
         mounts = [{{ path = '/workspace', host = '{}', access = 'read-write' }}]\n",
        data.display()
    );
    world.home_file("belljar.toml", &mounts);
    let transcript = world.other(
        "data.yaml",
        br#"
transcript: 1
agents:
  - agent: general-purpose
    turns:
      - calls:
          - {name: file_read, arguments: {path: in.txt}}
          - {name: file_write, arguments: {path: out.txt, content: written}}
      - expect:
          results:
            - {name: file_read, contains: some data, is_error: false}
            - {name: file_write, is_error: false}
        say: Done.
"#,
    );
    world.run(&["run", "--transcript", transcript.to_str().unwrap(), "copy"]).exits(0);
    assert_eq!(fs::read_to_string(data.join("out.txt")).unwrap(), "written");
}

#[test]
fn agents_that_the_operator_keeps_elsewhere_are_read_through_their_links() {
    let world = World::new();
    let agent = b"---\nname: faraway\ndescription: d\ntools: []\n---\nBe brief.\n";
    let elsewhere = world.other("dotfiles/faraway.md", agent);
    fs::create_dir(world.home().join("agents")).unwrap();
    std::os::unix::fs::symlink(elsewhere, world.home().join("agents/faraway.md")).unwrap();
    world.run(&["agents", "list"]).exits(0).says("faraway");
}

#[test]
fn a_recording_stays_where_the_run_does_not_begin_and_is_replaced_where_it_does() {
    let (world, transcript) = world();
    let record = world.file("recorded.yaml", &"an older one, and longer\n".repeat(1_000));
    let path = record.to_str().unwrap();
    world.run(&["run", "--record", path, TASK]).exits(5);
    assert!(fs::read_to_string(&record).unwrap().starts_with("an older one"));
    let model = format!("[models.main]\nkind = \"scripted\"\nmodel = \"{transcript}\"\n");
    world.home_file("belljar.toml", &model);
    world.run(&["run", "--record", path, TASK]).exits(0);
    assert!(!fs::read_to_string(&record).unwrap().contains("an older one"));
    world.run(&["run", "--record", "/nowhere/r.yaml", TASK]).exits(1).complains("/nowhere/r.yaml");
}

/// Runs a command below a kernel, as it were, that has neither landlock nor seccomp.
fn without_the_kernels_help(mut command: std::process::Command) -> Done {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    let refused = [
        libc::SYS_landlock_create_ruleset,
        libc::SYS_landlock_add_rule,
        libc::SYS_landlock_restrict_self,
        libc::SYS_seccomp,
    ];
    let rules = refused.into_iter().map(|call| (call, Vec::new())).collect();
    let lacks = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let here = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, lacks, here).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    // A thread's filter is its children's too, and ends with it.
    let thread = std::thread::spawn(move || {
        seccompiler::apply_filter(&program).unwrap();
        command.output().unwrap()
    });
    Done::of(thread.join().unwrap())
}

#[test]
fn where_the_os_sandbox_does_not_stand_a_run_says_so_also_when_quiet() {
    let (world, transcript) = world();
    let args = ["-q", "run", "--transcript", &transcript, TASK];
    let run = without_the_kernels_help(world.command(&args)).exits(0);
    let run =
        run.complains("warning: the OS sandbox does not stand: landlock").complains("seccomp");
    // With a kernel that has both there is nothing to say.
    let with = world.run(&args).exits(0);
    assert!(!with.stderr.contains("does not stand"), "{}", with.stderr);
    assert_eq!(with.stdout, run.stdout);
}

#[test]
fn where_the_os_sandbox_is_required_and_does_not_stand_nothing_runs() {
    let (world, transcript) = world();
    world.home_file("belljar.toml", "require_os_sandbox = true\n");
    let args = ["run", "--transcript", &transcript, TASK];
    let refused = without_the_kernels_help(world.command(&args)).exits(1);
    let refused = refused.complains("the OS sandbox does not stand");
    let refused = refused.complains("--no-os-sandbox");
    assert_eq!(refused.stdout, "");
    assert!(!world.home().join("sessions/store/belljar.db").exists(), "a run was begun");
    // The operator's word is the way out, and a kernel that has it is asked for nothing more.
    let without = world.command(&[&args[..], &["--no-os-sandbox"]].concat());
    without_the_kernels_help(without).exits(0).complains("switched off");
    world.run(&args).exits(0);
}

#[test]
fn a_server_does_not_start_where_the_os_sandbox_does_not_stand() {
    let world = World::new();
    let serve = world.command(&["serve", "--listen", "127.0.0.1:0"]);
    let refused = without_the_kernels_help(serve).exits(1);
    let refused = refused.complains("the OS sandbox does not stand");
    assert_eq!(refused.stdout, "", "it listens");
}

#[test]
fn a_hook_command_finds_no_key_in_the_environment_of_any_process() {
    let (world, transcript) = world();
    // It looks at every process that it may look at, as the tests' own user.
    let hook = "cat > /dev/null; cat /proc/[0-9]*/environ > ../seen.bin 2> /dev/null; true";
    let settings = format!("[[hooks]]\nevent = \"PreToolUse\"\ncommand = \"{hook}\"\n");
    world.home_file("belljar.toml", &settings);
    let canary = "sk-canary-of-the-operators-own";
    let mut command = world.command(&["run", "--transcript", &transcript, TASK]);
    let run = Done::of(command.env("OPENAI_API_KEY", canary).output().unwrap()).exits(0);
    let seen = fs::read(world.workspace().join("../seen.bin")).unwrap();
    assert!(!seen.is_empty(), "it has looked at nothing: {}", run.stderr);
    let seen = String::from_utf8_lossy(&seen).into_owned();
    assert!(!seen.contains(canary));
}

#[test]
fn what_is_compiled_is_kept_by_the_broker_and_used_by_the_next_run() {
    let (world, transcript) = world_with_a_component();
    let cache = world.home().join("own-cache");
    let run = || {
        let mut command = world.command(&["run", "--transcript", &transcript, TASK]);
        Done::of(command.env("BELLJAR_CACHE", &cache).output().unwrap()).exits(0)
    };
    let listed = || {
        let mut all: Vec<_> = fs::read_dir(&cache)
            .unwrap()
            .flatten()
            .map(|entry| (entry.file_name(), entry.metadata().unwrap().modified().unwrap()))
            .collect();
        all.sort();
        all
    };
    run();
    let first = listed();
    assert!(first.iter().any(|(name, _)| name.to_str().unwrap().ends_with("cwasm")), "{first:?}");
    run();
    assert_eq!(listed(), first, "something was made anew");
    // What is not genuine is made anew where it is needed, and whoever asked gets no other.
    let codes = first.iter().filter(|(name, _)| name.to_str().unwrap().ends_with("cwasm"));
    let codes: Vec<_> = codes.map(|(name, _)| cache.join(name)).collect();
    codes.iter().for_each(|code| fs::write(code, "planted").unwrap());
    run();
    assert!(codes.iter().any(|code| fs::read(code).unwrap() != b"planted"));
}
