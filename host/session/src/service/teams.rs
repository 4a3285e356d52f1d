//! Begins turns of teams, under the same limits as turns of agents.

use std::sync::Arc;

use belljar_agent::{
    Host, ResolvedAgent, ResolvedTeam, RunSpec, TeamSpec, preview_request, resolve_team,
};
use belljar_store::SessionKind;

use super::ServiceInner;
use super::begin::{StoredWork, TurnPerformer, WaitMode};
use super::running::{RunningTurn, SessionClaim};
use super::types::{ServiceError, TurnRequest};

impl ServiceInner {
    /// Begins the turn of a team in the claimed new session.
    pub(super) async fn begin_team(
        self: &Arc<Self>,
        claim: SessionClaim,
        request: TurnRequest,
    ) -> Result<RunningTurn, ServiceError> {
        let name = request.agent.as_deref().unwrap_or_default();
        let admitted = self.admit_turn::<ResolvedTeam>(name, WaitMode::InLine).await?;
        let spec = TeamSpec {
            team: Arc::clone(&admitted.found),
            task: request.text,
            model: request.model,
            workspace: self.workspace.clone(),
            limits: request.limits,
            budget: Some(self.allowance.day_budget(&self.store, &*self.clock).await?),
            layers: None,
        };
        // INV-152: checked after the wait, and before anything is stored.
        let needed = || least_tokens(&admitted.host, &spec);
        self.allowance.check_step(&self.store, &*self.clock, needed).await?;
        let (saved, _) = self.open_session(claim.session_id().to_owned(), None).await?;
        let mut saved = saved.with_kind(SessionKind::Team);
        let turn = saved.set_actor(&request.actor, Some(request.door)).say_team(&spec).await?;
        let work = StoredWork::Team(Box::new(spec));
        Ok(self.spawn_turn(claim, admitted, saved, work, turn, request.kept))
    }
}

impl TurnPerformer for ResolvedTeam {
    async fn find_runnable(
        inner: &ServiceInner,
        host: &Arc<Host>,
        name: &str,
    ) -> Result<Arc<Self>, ServiceError> {
        let (name, workspace, of) = (name.to_owned(), inner.workspace.clone(), Arc::clone(host));
        let team = inner.look_up(move |_| resolve_team(&of, &name, &workspace)).await?;
        let team = team.map_err(|error| ServiceError::Invalid(error.to_string()))?;
        if let Some(problem) = team.problems.first() {
            return Err(ServiceError::Agent(format!("team `{}` cannot run: {problem}", team.id)));
        }
        match host.models.is_empty() {
            true => Err(ServiceError::NoModel),
            false => Ok(Arc::new(team)),
        }
    }

    /// The most jars that the agents of one stage use, for the largest stage.
    fn max_jars(&self, host: &Host) -> usize {
        let jars = |stage: &Vec<Arc<ResolvedAgent>>| {
            stage.iter().fold(0_usize, |jars, agent| jars.saturating_add(agent.max_jars(host)))
        };
        self.stages().iter().map(jars).max().unwrap_or(1)
    }
}

/// The fewest tokens that the first step of each agent in the first stage needs, in all.
async fn least_tokens(host: &Host, spec: &TeamSpec) -> Result<u64, ServiceError> {
    let mut least = 0_u64;
    for agent in spec.team.stages().first().into_iter().flatten() {
        let (task, workspace) = (spec.task.clone(), spec.workspace.clone());
        let spec = RunSpec {
            model: spec.model.clone(),
            ..RunSpec::new(Arc::clone(agent), task, workspace)
        };
        // A request that cannot be made for another reason is reported by the turn itself.
        let made = preview_request(host, spec).await;
        least = least.saturating_add(made.map_or(0, |made| made.least_tokens()));
    }
    Ok(least)
}
