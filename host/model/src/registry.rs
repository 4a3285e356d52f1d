//! Finds the configured model for a name in an agent file, a command or a request.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::ChatModel;
use crate::config::{ConfigError, ModelConfig, ModelProvider};
use crate::roles::{ALIASES, ModelRole, RoleAlias, RoleTable};
use crate::scripted::{Recording, RecordingModel};
use crate::text::{list_names, quote_text};

/// A function that returns the value of an environment variable.
pub type Env = dyn Fn(&str) -> Option<String> + Send + Sync;

/// All configured models. A model is built when it is first used, so an unused model needs no key.
pub struct ModelRegistry {
    configs: BTreeMap<String, ModelConfig>,
    roles: RoleTable,
    env: Box<Env>,
    made: Mutex<BTreeMap<String, Arc<dyn ChatModel>>>,
    /// The model that answers every request, if the registry was made by [`Self::from_single`].
    only: Option<Arc<dyn ChatModel>>,
    /// The tokens that a request to that model and its answer may have together, if known.
    only_reads: Option<u64>,
    recording: Option<Recording>,
}

/// The model that was found for a name.
#[derive(Clone)]
pub struct ResolvedModel {
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// The model's name in the configuration. It is passed as `parent` when a subagent's model is resolved.
    pub name: String,
    /// The tokens that a request and its answer may have together; `None` if unknown.
    pub context_tokens: Option<u64>,
    /// True if subagents of the model get small prompts.
    pub small: bool,
    /// Notes for the operator, for example that another model replaced the requested one.
    pub notes: Vec<String>,
}

/// A role and its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoleAssignment<'a> {
    /// The role's name, for example `main`.
    pub role: &'static str,
    /// The name of the configured model; `None` if the role has no model.
    pub model: Option<&'a str>,
    /// True if the role has no model of its own, so the main model is used.
    pub by_main: bool,
}

/// The reason why no model was found for a name.
#[derive(Debug, thiserror::Error)]
pub enum ModelResolveError {
    /// No model is configured at all.
    #[error("no model is configured")]
    NoModels,
    /// Several models are configured, and none has the role `main`.
    #[error("no model plays the role `main`; set `main` under `[roles]` to one of {configured}")]
    NoMain {
        /// The configured models.
        configured: String,
    },
    /// The name is no alias, no configured model, and no id of a configured model.
    #[error(
        "model `{request}` is not configured; add it under `[models]`, or use a role (main, fast, strong) or one of {configured}"
    )]
    Unknown {
        /// The requested name; escaped.
        request: String,
        /// The configured models.
        configured: String,
    },
    /// A role names a model that is not configured.
    #[error(
        "role `{role}` names the model `{name}`, which is not configured; configured are {configured}"
    )]
    RoleTarget {
        /// The role, for example `main`.
        role: &'static str,
        /// The name in the configuration; escaped.
        name: String,
        /// The configured models.
        configured: String,
    },
    /// A model is configured under a name that is reserved for the parent's model.
    #[error("a model cannot be called `{name}`: that word stands for the parent's model")]
    Reserved {
        /// The reserved name, for example `inherit`.
        name: String,
    },
    /// The configured model cannot be used.
    #[error("model `{name}` cannot be used: {source}")]
    Config {
        /// The name; escaped.
        name: String,
        /// The reason.
        source: ConfigError,
    },
}

impl ModelResolveError {
    /// The error in words for any caller: without hints for the operator, and without names of files and
    /// variables that contain keys.
    #[must_use]
    pub fn public_message(&self) -> String {
        match self {
            Self::NoMain { .. } => "no model plays the role `main`".to_owned(),
            Self::Unknown { request, configured } => format!(
                "model `{request}` is not configured; use a role (main, fast, strong) or one of \
                 {configured}"
            ),
            Self::Config { name, .. } => format!("model `{name}` cannot be used"),
            Self::NoModels | Self::RoleTarget { .. } | Self::Reserved { .. } => self.to_string(),
        }
    }
}

impl ModelRegistry {
    /// Creates a registry of the given models. `env` returns the value of an environment variable.
    ///
    /// # Errors
    /// [`ModelResolveError::RoleTarget`] if a role names a model that does not exist,
    /// [`ModelResolveError::Reserved`] if a model is called `inherit`.
    pub fn new(
        configs: BTreeMap<String, ModelConfig>,
        roles: RoleTable,
        env: Box<Env>,
    ) -> Result<Self, ModelResolveError> {
        let models = Self {
            configs,
            roles,
            env,
            made: Mutex::default(),
            only: None,
            only_reads: None,
            recording: None,
        };
        if let Some(name) = models.configs.keys().find(|name| name.eq_ignore_ascii_case("inherit"))
        {
            return Err(ModelResolveError::Reserved { name: name.clone() });
        }
        for role in ModelRole::ALL {
            match models.roles.get(role) {
                Some(name) if !models.configs.contains_key(name) => {
                    return Err(ModelResolveError::RoleTarget {
                        role: role.name(),
                        name: quote_text(name),
                        configured: models.list_configured(),
                    });
                }
                Some(_) | None => {}
            }
        }
        Ok(models)
    }

    /// A registry in which every name stands for one model, for example in a scripted run.
    #[must_use]
    pub fn from_single(model: Arc<dyn ChatModel>) -> Self {
        Self {
            configs: BTreeMap::new(),
            roles: RoleTable::default(),
            env: Box::new(|_| None),
            made: Mutex::default(),
            only: Some(model),
            only_reads: None,
            recording: None,
        }
    }

    /// Sets the `context_tokens` of the model of [`ModelRegistry::from_single`]. Default: unknown.
    #[must_use]
    pub fn that_reads(mut self, context_tokens: u64) -> Self {
        self.only_reads = Some(context_tokens);
        self
    }

    /// Records every call of the models into `recording`.
    #[must_use]
    pub fn with_recording(mut self, recording: Recording) -> Self {
        self.only = self.only.map(|model| wrap_recorder(model, Some(&recording)));
        self.recording = Some(recording);
        self
    }

    /// Returns whether no model is configured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.configs.is_empty() && self.only.is_none()
    }

    /// Finds the model for a name: a name in the configuration, an alias (see [`ALIASES`]), or a model's id
    /// at its provider (for example `gpt-x`, `openai:gpt-x` or `openai/gpt-x`), in this order. `parent` is
    /// the [`ResolvedModel::name`] of the parent agent's model.
    ///
    /// # Errors
    /// [`ModelResolveError`] for an unknown name. For a role without a model, the main model is used, with a
    /// note.
    pub fn resolve_model(
        &self,
        request: &str,
        parent: Option<&str>,
    ) -> Result<ResolvedModel, ModelResolveError> {
        let request = request.trim();
        if let Some(model) = &self.only {
            let name = model.id().to_owned();
            let (model, notes) = (Arc::clone(model), Vec::new());
            let context_tokens = self.only_reads;
            return Ok(ResolvedModel { model, name, context_tokens, small: false, notes });
        }
        if self.configs.is_empty() {
            return Err(ModelResolveError::NoModels);
        }
        let mut notes = Vec::new();
        let name = self.name_of(request, parent, &mut notes)?;
        let model = self.get_or_make(name, &mut notes)?;
        let config = self.configs.get(name);
        let context_tokens = config.and_then(|config| config.context_tokens);
        let small = config.is_some_and(|config| config.small);
        Ok(ResolvedModel { model, name: name.to_owned(), context_tokens, small, notes })
    }

    /// The configured name that `request` stands for: itself, the model of an alias's role, the parent's
    /// model, or the model with the given id.
    fn name_of(
        &self,
        request: &str,
        parent: Option<&str>,
        notes: &mut Vec<String>,
    ) -> Result<&str, ModelResolveError> {
        if let Some((name, _)) = self.configs.get_key_value(request) {
            return Ok(name);
        }
        match ALIASES.iter().find(|alias| alias.name.eq_ignore_ascii_case(request)) {
            Some(RoleAlias { role: Some(ModelRole::Main), .. }) => self.main(),
            Some(RoleAlias { role: Some(role), .. }) => {
                match self.chosen_model(*role) {
                    Some(name) => Ok(name),
                    None => {
                        let main = self.main()?;
                        let (role, name) = (role.name(), quote_text(main));
                        notes.push(format!("no model plays the role `{role}`; the main model `{name}` takes its place"));
                        Ok(main)
                    }
                }
            }
            Some(RoleAlias { role: None, .. }) => match parent {
                Some(parent) => self
                    .configs
                    .get_key_value(parent)
                    .map(|(name, _)| name.as_str())
                    .ok_or_else(|| self.unknown_error(parent)),
                None => self.main(),
            },
            None => self.by_id(request).ok_or_else(|| self.unknown_error(request)),
        }
    }

    /// The names of the configured models, sorted.
    pub fn model_names(&self) -> impl Iterator<Item = &str> {
        self.configs.keys().map(String::as_str)
    }

    /// Each role with its model.
    pub fn role_assignments(&self) -> impl Iterator<Item = RoleAssignment<'_>> {
        let main = self.main().ok();
        ModelRole::ALL.into_iter().map(move |role| {
            let chosen = if role == ModelRole::Main { main } else { self.chosen_model(role) };
            let by_main = chosen.is_none() && main.is_some();
            RoleAssignment { role: role.name(), model: chosen.or(main), by_main }
        })
    }

    /// The configured model for a role: the one that `[roles]` names, or else the one that is named like the
    /// role.
    fn chosen_model(&self, role: ModelRole) -> Option<&str> {
        let name = self.roles.get(role).unwrap_or(role.name());
        self.configs.get_key_value(name).map(|(name, _)| name.as_str())
    }

    /// The name of the main model: the one with the role `main`, or else the only one that is not scripted.
    fn main(&self) -> Result<&str, ModelResolveError> {
        if let Some(name) = self.chosen_model(ModelRole::Main) {
            return Ok(name);
        }
        // A scripted model is never chosen automatically.
        let mut real =
            self.configs.iter().filter(|(_, config)| config.provider != ModelProvider::Scripted);
        match (real.next(), real.next()) {
            (Some((name, _)), None) => Ok(name),
            _ => Err(ModelResolveError::NoMain { configured: self.list_configured() }),
        }
    }

    /// The name of the configured model with this id at its provider.
    fn by_id(&self, request: &str) -> Option<&str> {
        let matches = |config: &ModelConfig| {
            let rest = request
                .strip_prefix(config.provider.name())
                .and_then(|rest| rest.strip_prefix([':', '/']));
            config.model == request || rest == Some(config.model.as_str())
        };
        let found = self
            .configs
            .iter()
            .find(|(_, config)| config.provider != ModelProvider::Scripted && matches(config));
        found.map(|(name, _)| name.as_str())
    }

    /// A remark for the operator about the key of a configured model, for example that it is a placeholder.
    /// The key is read again, and never shown.
    pub fn key_remark(&self, name: &str) -> Option<String> {
        let config = self.configs.get(name)?;
        config
            .key
            .key_remark(&*self.env)
            .map(|remark| format!("model `{}`: {remark}", quote_text(name)))
    }

    /// Returns the model with this configured name, and builds it on first use.
    fn get_or_make(
        &self,
        name: &str,
        notes: &mut Vec<String>,
    ) -> Result<Arc<dyn ChatModel>, ModelResolveError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = made.get(name) {
            return Ok(Arc::clone(model));
        }
        let config = self.configs.get(name).ok_or_else(|| self.unknown_error(name))?;
        let model = config
            .build_model(&*self.env, notes)
            .map_err(|source| ModelResolveError::Config { name: quote_text(name), source })?;
        let model = wrap_recorder(model, self.recording.as_ref());
        made.insert(name.to_owned(), Arc::clone(&model));
        Ok(model)
    }

    /// The error of a request for a model that is not configured.
    fn unknown_error(&self, request: &str) -> ModelResolveError {
        ModelResolveError::Unknown {
            request: quote_text(request),
            configured: self.list_configured(),
        }
    }

    fn list_configured(&self) -> String {
        list_names(self.configs.keys().map(String::as_str))
    }
}

/// Wraps a model so its calls are recorded, if there is a recording.
fn wrap_recorder(model: Arc<dyn ChatModel>, recording: Option<&Recording>) -> Arc<dyn ChatModel> {
    match recording {
        Some(recording) => Arc::new(RecordingModel::with_recording(recording.clone(), model)),
        None => model,
    }
}

impl fmt::Debug for ModelRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelRegistry")
            .field("configs", &self.configs)
            .field("roles", &self.roles)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ResolvedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedModel")
            .field("model", &self.model.id())
            .field("name", &self.name)
            .field("notes", &self.notes)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeySource;

    type Configs = Vec<(&'static str, ModelConfig)>;

    fn models(configs: Configs, roles: RoleTable) -> Result<ModelRegistry, ModelResolveError> {
        let configs = configs.into_iter().map(|(name, config)| (name.to_owned(), config));
        let env = |name: &str| (name == "KEY").then(|| "sk-hunter2".to_owned());
        ModelRegistry::new(configs.collect(), roles, Box::new(env))
    }

    fn open_ai(model: &str, key: KeySource) -> ModelConfig {
        ModelConfig { key, ..ModelConfig::new(ModelProvider::OpenAi, model) }
    }

    fn scripted() -> ModelConfig {
        ModelConfig::new(ModelProvider::Scripted, "t.yaml")
    }

    fn env(name: &str) -> KeySource {
        KeySource::Env(name.to_owned())
    }

    /// Two models: `local`, which is the main model, and `big`, which is the strong one.
    fn two() -> ModelRegistry {
        let mut local = open_ai("gpt-x", KeySource::None);
        local.base_url = Some("http://127.0.0.1:1/v1".parse().unwrap());
        let big =
            ModelConfig { provider: ModelProvider::Anthropic, ..open_ai("claude-x", env("KEY")) };
        let (main, strong) = (Some("local".to_owned()), Some("big".to_owned()));
        let roles = RoleTable { main, strong, ..RoleTable::default() };
        models(vec![("local", local), ("big", big)], roles).unwrap()
    }

    #[test]
    fn each_role_has_its_player_or_the_main_model() {
        let two = two();
        assert_eq!(two.model_names().collect::<Vec<_>>(), ["big", "local"]);
        let played: Vec<_> =
            two.role_assignments().map(|one| (one.role, one.model.unwrap(), one.by_main)).collect();
        let expected = [
            ("main", "local", false),
            ("fast", "local", true),
            ("strong", "big", false),
            ("compaction", "local", true),
            ("fallback", "local", true),
        ];
        assert_eq!(played, expected);
        let none = models(vec![], RoleTable::default()).unwrap();
        assert!(none.role_assignments().all(|one| one.model.is_none() && !one.by_main));
    }

    #[test]
    fn what_is_told_to_strangers_names_no_file_variable_or_section_of_the_operators() {
        let source = |key| {
            let one = models(vec![("main", open_ai("x", key))], RoleTable::default()).unwrap();
            one.resolve_model("main", None).unwrap_err()
        };
        let text = || "main".to_owned();
        let all = [
            source(env("UNSET")),
            source(KeySource::File("/srv/key".into())),
            ModelResolveError::NoModels,
            ModelResolveError::NoMain { configured: text() },
            ModelResolveError::Unknown { request: text(), configured: text() },
            ModelResolveError::RoleTarget { role: "fast", name: text(), configured: text() },
            ModelResolveError::Reserved { name: text() },
        ];
        for error in all {
            // A new kind of error makes this match incomplete, so it is considered here.
            match &error {
                ModelResolveError::NoModels
                | ModelResolveError::NoMain { .. }
                | ModelResolveError::Unknown { .. }
                | ModelResolveError::RoleTarget { .. }
                | ModelResolveError::Reserved { .. }
                | ModelResolveError::Config { .. } => {}
            }
            let told = error.public_message();
            for operators in ["UNSET", "/srv", "environment", "`[models]`", "`[roles]`"] {
                assert!(!told.contains(operators), "{told}");
            }
        }
    }

    #[test]
    fn every_kind_of_name_finds_its_model() {
        let models = two();
        for (request, parent, name, notes) in [
            ("main", None, "local", 0),
            ("Main", Some("big"), "local", 0),
            ("SONNET", None, "local", 0),
            ("medium", None, "local", 0),
            ("opus", None, "big", 0),
            ("strong", None, "big", 0),
            ("haiku", None, "local", 1),
            ("Compaction", None, "local", 1),
            ("Fallback", None, "local", 1),
            ("inherit", None, "local", 0),
            ("inherit", Some("big"), "big", 0),
            ("big", None, "big", 0),
            ("claude-x", None, "big", 0),
            ("anthropic/claude-x", None, "big", 0),
            ("openai:gpt-x", None, "local", 0),
        ] {
            let resolved = models.resolve_model(request, parent).unwrap();
            assert_eq!((resolved.name.as_str(), resolved.notes.len()), (name, notes), "{request}");
        }
    }

    #[test]
    fn a_name_that_means_nothing_is_an_error_and_not_the_main_model() {
        let models = two();
        for request in ["gpt-5", "anthropic:gpt-x", "", "BIG"] {
            let error = models.resolve_model(request, None).unwrap_err();
            assert!(matches!(error, ModelResolveError::Unknown { .. }), "{request}: {error}");
        }
    }

    #[test]
    fn a_scripted_model_is_never_chosen_by_itself() {
        let models = models(vec![("demo", scripted())], RoleTable::default()).unwrap();
        let refused = |request| models.resolve_model(request, None).unwrap_err();
        assert!(matches!(refused("main"), ModelResolveError::NoMain { .. }));
        assert!(matches!(refused("t.yaml"), ModelResolveError::Unknown { .. }));
        let named = refused("demo");
        assert!(
            matches!(named, ModelResolveError::Config { .. }),
            "it is tried when named: {named}"
        );
    }

    #[test]
    fn the_only_real_model_is_the_main_one() {
        let both = vec![("x", open_ai("m", KeySource::None)), ("demo", scripted())];
        let models = models(both, RoleTable::default()).unwrap();
        assert_eq!(models.resolve_model("sonnet", None).unwrap().name, "x");
    }

    #[test]
    fn a_role_that_names_no_model_is_an_error_at_once() {
        let roles = RoleTable { fast: Some("y".to_owned()), ..RoleTable::default() };
        let models = models(vec![("x", open_ai("m", KeySource::None))], roles);
        assert!(matches!(models, Err(ModelResolveError::RoleTarget { role: "fast", .. })));
    }

    #[test]
    fn the_key_of_a_model_that_is_not_used_is_not_needed() {
        let (main, other) = (open_ai("m", KeySource::None), open_ai("n", env("UNSET")));
        let models = models(vec![("main", main), ("other", other)], RoleTable::default()).unwrap();
        assert!(models.resolve_model("main", None).is_ok());
        let error = models.resolve_model("other", None).unwrap_err();
        assert!(error.to_string().contains("`UNSET` is not set"), "{error}");
    }

    #[test]
    fn no_model_at_all_is_an_error_of_its_own() {
        let models = models(vec![], RoleTable::default()).unwrap();
        assert!(models.is_empty());
        assert!(matches!(models.resolve_model("main", None), Err(ModelResolveError::NoModels)));
    }

    #[test]
    fn no_debug_output_shows_a_key_or_a_header() {
        let mut config = open_ai("m", env("KEY"));
        config.headers.insert("x-team".to_owned(), "hunter2".to_owned());
        let models = models(vec![("x", config)], RoleTable::default()).unwrap();
        models.resolve_model("x", None).unwrap();
        let env = |_: &str| Some("sk-hunter2".to_owned());
        let wire = models.configs["x"].build_wire(&env, &mut Vec::new()).unwrap();
        assert!(!format!("{models:?} {wire:?}").contains("hunter2"));
    }
}
