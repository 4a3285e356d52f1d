// Made by `npm run schema` from the OpenAPI document of the server. Do not edit.

export interface paths {
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * whether the process answers
         * @description Needs no key.
         */
        get: operations["health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * counters for Prometheus
         * @description Needs a key of the scope `admin` of the operator's own tenant.
         */
        get: operations["metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * whether it takes turns
         * @description Needs no key.
         */
        get: operations["ready"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * list agents
         * @description Needs a key.
         */
        get: operations["list_agents"];
        put?: never;
        /**
         * keep a new agent
         * @description Needs a key of the scope `admin`.
         */
        post: operations["create_agent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{slug}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * read an agent
         * @description Needs a key.
         */
        get: operations["read_agent"];
        /**
         * keep the next version of an agent
         * @description Needs a key of the scope `admin`.
         */
        put: operations["replace_agent"];
        post?: never;
        /**
         * delete an agent that is kept here
         * @description Needs a key of the scope `admin`.
         */
        delete: operations["delete_agent"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/validate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * check the text of an agent
         * @description Needs a key of the scope `member` or `admin`.
         */
        post: operations["validate_agent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * read the audit log
         * @description Needs a key of the scope `admin`.
         */
        get: operations["read_audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/chat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * send a message to an agent
         * @description Needs a key of the scope `member` or `admin`.
         */
        post: operations["chat"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/chat/completions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * a chat completion, as OpenAI has it
         * @description Needs a key of the scope `member` or `admin`.
         */
        post: operations["complete_chat"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * say whether an agent may use a tool, and who decides
         * @description Needs a key.
         */
        get: operations["explain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/grants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * say what an agent may do
         * @description Needs a key.
         */
        get: operations["read_grants"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/libraries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * list installed libraries
         * @description Needs a key.
         */
        get: operations["list_libraries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * log a browser in, by a cookie
         * @description Needs no key.
         */
        post: operations["login"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * end a login
         * @description Needs a key.
         */
        post: operations["logout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * say who calls
         * @description Needs a key.
         */
        get: operations["me"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * list agents as models
         * @description Needs a key.
         */
        get: operations["list_models"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/models/{model}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * read an agent as a model
         * @description Needs a key.
         */
        get: operations["read_model"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * this document
         * @description Needs no key.
         */
        get: operations["openapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * show what a model would be sent
         * @description Needs a key of the scope `member` or `admin`.
         */
        post: operations["preview"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/questions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * list all open questions
         * @description Needs a key.
         */
        get: operations["list_questions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/responses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * a response, as OpenAI and Open Responses have it
         * @description Needs a key of the scope `member` or `admin`.
         */
        post: operations["create_response"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/responses/{response}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * read a response
         * @description Needs a key.
         */
        get: operations["read_response"];
        put?: never;
        post?: never;
        /**
         * delete a response with its session
         * @description Needs a key of the scope `member` or `admin`.
         */
        delete: operations["delete_response"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/responses/{response}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * end a response in the background
         * @description Needs a key of the scope `member` or `admin`.
         */
        post: operations["cancel_response"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/responses/{response}/input_items": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * list what was asked
         * @description Needs a key.
         */
        get: operations["list_input_items"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rights": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * say which agents may use which tools
         * @description Needs a key.
         */
        get: operations["read_rights"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/roles": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * list models and their roles
         * @description Needs a key.
         */
        get: operations["list_roles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/running": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * list the turns that run
         * @description Needs a key.
         */
        get: operations["list_running"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * list sessions
         * @description Needs a key.
         */
        get: operations["list_sessions"];
        put?: never;
        post?: never;
        /**
         * delete all sessions
         * @description Needs a key of the scope `admin`.
         */
        delete: operations["delete_sessions"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * read a session
         * @description Needs a key.
         */
        get: operations["read_session"];
        put?: never;
        post?: never;
        /**
         * delete a session
         * @description Needs a key of the scope `member` or `admin`.
         */
        delete: operations["delete_session"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/apply": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * put changes of a session into the workspace
         * @description Needs a key of the scope `member` or `admin`.
         */
        post: operations["apply_changes"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/attachments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * list files of a session
         * @description Needs a key.
         */
        get: operations["list_attachments"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/attachments/{attachment}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * read a file of a session
         * @description Needs a key.
         */
        get: operations["read_attachment"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * end a turn, or one subagent
         * @description Needs a key of the scope `member` or `admin`.
         */
        post: operations["cancel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * show what a session changed in its overlays
         * @description Needs a key.
         */
        get: operations["read_changes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/contents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * count what is deleted with a session
         * @description Needs a key.
         */
        get: operations["read_contents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/discard": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * throw changes of a session away
         * @description Needs a key of the scope `member` or `admin`.
         */
        post: operations["discard_changes"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * watch what happens in a session
         * @description Needs a key.
         */
        get: operations["watch_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * list the messages of a session
         * @description Needs a key.
         */
        get: operations["list_messages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/questions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * list the open questions of a session
         * @description Needs a key.
         */
        get: operations["list_session_questions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/questions/{question}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * answer a question
         * @description Needs a key of the scope `member` or `admin`.
         */
        post: operations["answer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/receipts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * list what tool calls did
         * @description Needs a key.
         */
        get: operations["list_receipts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * resume an interrupted turn
         * @description Needs a key of the scope `member` or `admin`.
         */
        post: operations["resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/subagents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * list the subagents of a session
         * @description Needs a key.
         */
        get: operations["list_subagents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/undo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * take the last apply back
         * @description Needs a key of the scope `member` or `admin`.
         */
        post: operations["undo_apply"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tools": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * list tools
         * @description Needs a key.
         */
        get: operations["list_tools"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * what was used, by day, agent and model
         * @description Needs a key.
         */
        get: operations["read_usage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/ws": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * turns and events on one connection
         * @description Needs a key.
         */
        get: operations["websocket"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description That an answer has arrived. */
        Accepted: {
            /** @description `true`. */
            accepted: boolean;
        };
        /** @description An agent. */
        AgentBody: components["schemas"]["AgentSummary"] & {
            /** @description The system prompt. */
            body?: string | null;
            /** @description Findings that its author should know. */
            diagnostics: components["schemas"]["DiagnosticBody"][];
            /** @description Its text, as far as it can be read. */
            text?: string | null;
        };
        /** @description That an agent is gone. */
        AgentDeleted: {
            /** @description `true`. */
            deleted: boolean;
        };
        /** @description The agents of a tenant. */
        Agents: {
            agents: components["schemas"]["AgentSummary"][];
            /** @description Files that cannot be understood as agents, at most 200; on the first page. */
            broken?: components["schemas"]["BrokenBody"][];
            /**
             * @description Agents that wait in the home until the operator takes them into use, at most 200; on the first
             *     page.
             */
            drafts?: components["schemas"]["DraftBody"][];
            /**
             * @description The value to send as `after` for the next ones; absent where there are none. A page ends
             *     behind 2 MiB.
             */
            next?: string | null;
        };
        /** @description An agent in short. Its texts are its author's. */
        AgentSummary: {
            definition?: components["schemas"]["DefinitionBody"] | null;
            /**
             * @description `home`, `workspace`, or `library/NAME`. One that is kept here has `library/api`, and is called
             *     `library/api/NAME` wherever a request names an agent.
             */
            scope: string;
            /** @description Its name. */
            slug: string;
            /**
             * Format: int64
             * @description When it was last changed, in milliseconds since 1970; of those that are kept here.
             */
            updated?: number | null;
        };
        /** @description The next version of an agent. */
        AgentTextBody: {
            /** @description The markdown file. */
            text: string;
        };
        /** @description The two answers, as they are described. */
        AnswerBody: {
            /** @description Whether the tool may be called: this once, in the whole turn, or not. */
            answer: components["schemas"]["Permission"];
        } | {
            /** @description The person's words; blank = none. */
            text: string;
        };
        /** @description The result of a turn. */
        Answered: {
            /** @description Why it did not complete, or not yet. */
            error?: string | null;
            /** @description The agent's message, to which the events, subagents and receipts of the turn belong. */
            message: string;
            /** @description The questions that the turn waits for. It goes on once they are answered. */
            questions?: components["schemas"]["QuestionBody"][];
            /** @description The session. */
            session: string;
            /**
             * @description `completed`, `partial`, `failed` or `cancelled`; `in_flight`, with status 202, where a person
             *     is asked (`questions`), or the server stopped meanwhile: then it is stored, and is resumed at
             *     the next start.
             */
            status: string;
            /** @description How its subagents ended. */
            subagents: components["schemas"]["Counted"];
            /** @description The conclusion. Foreign text: escape it before a person sees it. */
            text: string;
            /** @description The usage of the turn, subagents included. */
            usage: components["schemas"]["Used"];
            /** @description The person's message. */
            user_message: string;
        };
        /** @description The result of an apply, by path. */
        AppliedBody: {
            /** @description In the workspace as the agent had them. */
            applied: string[];
            /** @description Left, because both changed. */
            conflicts: components["schemas"]["LeftBody"][];
            /** @description Kept as the workspace had them. */
            dropped: string[];
            /**
             * Format: int64
             * @description How many of both are files and links: the others are directories.
             */
            files: number;
            /** @description Left, because they would run later by themselves. */
            held_back: components["schemas"]["LeftBody"][];
            /** @description Those of them that an undo does not bring back. */
            lost: string[];
            /** @description In the workspace, merged with what had changed there. */
            merged: string[];
        };
        /** @description Which changes are put into the workspace. */
        ApplyBody: {
            /** @description Also what would run later by itself; absent = no. */
            also_what_runs?: boolean | null;
            /**
             * Format: int64
             * @description `as_of` of the changes that were looked at: where a turn has changed something since, nothing
             *     is done. Absent = whatever is there.
             */
            as_of?: number | null;
            /**
             * Format: int64
             * @description How many changes are meant, as `entries` of the list says; where there are others, nothing is
             *     done. Needed for more than 5,000, together with `as_of`.
             */
            entries?: number | null;
            /** @description Paths of which the workspace's version counts where both changed. */
            mine?: string[] | null;
            /** @description Paths below `place`, each with all that is below it; absent or empty = all. */
            paths?: string[] | null;
            /** @description The directory, as agents see it; absent = `/workspace`. */
            place?: string | null;
            /** @description Paths of which the agent's version counts where both changed. */
            theirs?: string[] | null;
        };
        /**
         * @description The person's word.
         * @enum {string}
         */
        Approval: "yes" | "for_run" | "no" | "nobody" | "cancelled";
        /** @description The requests of a manifest. */
        AsksBody: {
            /** @description Hosts. */
            hosts: string[];
            /** @description `read` or `read-write`; absent = no files. */
            mounts?: string | null;
            /** @description Names of secrets. */
            secrets: string[];
        };
        /** @description A file. Its name and its media type are foreign. */
        AttachmentBody: {
            call_id?: string | null;
            /** Format: int64 */
            created: number;
            id: string;
            media_type: string;
            message: string;
            name: string;
            /** Format: int64 */
            size: number;
        };
        /** @description The latest files of a session, the oldest of them first. */
        Attachments: {
            attachments: components["schemas"]["AttachmentBody"][];
        };
        /** @description One line of the audit log. */
        AuditLine: {
            /** @description What: the name of the operation, or `refused`. */
            action: string;
            /** @description Who: `key:<id>`, `token:<issuer>#<subject>`, or `local`. */
            actor: string;
            /**
             * Format: int64
             * @description When, in milliseconds since 1970.
             */
            at: number;
            /** @description Everything else that is known. */
            detail: unknown;
            /** @description Its id; sorts by time. */
            id: string;
            /** @description On what. */
            object: string;
        };
        /** @description Lines of the audit log, the newest first. */
        AuditPage: {
            /** @description The lines. */
            entries: components["schemas"]["AuditLine"][];
            /**
             * @description The value to send as `before` for older ones; absent where there are none. A page ends
             *     behind 2 MiB, with fewer than `limit`.
             */
            next?: string | null;
        };
        /** @description A subagent of a batch that starts. */
        BatchChild: {
            /** @description The path of the subagent, for example `main/scout#0`. */
            child: string;
            /** @description Its task, cut. */
            task: string;
        };
        /** @description A part of a request. */
        BlockBody: {
            /**
             * Format: int64
             * @description Bytes of it.
             */
            bytes: number;
            /**
             * @description `system`: the agent's own words; `discovery`: whom it can hand work to; `skills`: what it can load;
             *     `advice`: what else the host tells it; `message`; `matched`: what fits the message's words; `tool`.
             */
            kind: string;
            /** @description Of a message its role, of a tool its name. */
            name?: string | null;
            /**
             * Format: int64
             * @description Tokens, as far as bytes tell: as the host estimates them itself.
             */
            tokens: number;
            /** @description Why it is there, or what it leaves out. */
            why?: string | null;
        };
        /** @description A file that cannot be understood as an agent, or whose name is taken. */
        BrokenBody: {
            /** @description Findings about it, the first five. */
            diagnostics: components["schemas"]["DiagnosticBody"][];
            /** @description The file, below the folder of agents of its scope. */
            file: string;
            /** @description `home`, `workspace`, or `library/NAME`. */
            scope: string;
            /** @description The name that its file gives it. */
            slug: string;
        };
        /** @description The work that is to end. No body: the whole turn. */
        CancelBody: {
            /** @description One subagent, by its path: `main/scout#0`. Absent: the whole turn. */
            subagent?: string | null;
        };
        /** @description Whether there was anything to end. */
        Cancelled: {
            /** @description `false`: it did not run any more. */
            cancelled: boolean;
        };
        /** @description A file or directory that is not as in the workspace. Foreign text. */
        ChangeBody: {
            /**
             * Format: int64
             * @description Lines that are new.
             */
            added: number;
            /** @description Whether lines cannot be counted: it is not text, or too large. */
            binary: boolean;
            /** @description Why it cannot be applied as it is. */
            conflict?: string | null;
            /** @description Whether its lines were counted. */
            counted: boolean;
            /** @description Whether it is a directory. */
            directory: boolean;
            /** @description Where it was, if it was renamed. */
            from?: string | null;
            /** @description `added`, `modified`, `deleted`, `renamed` or `mode`. */
            kind: string;
            /** @description Whether the workspace changed too, and both merge. */
            merges: boolean;
            /** @description Below the directory. */
            path: string;
            /**
             * Format: int64
             * @description Lines that are gone.
             */
            removed: number;
            /**
             * @description Whether all lines between the first and the last difference count as replaced, because comparing
             *     them would take too long.
             */
            replaced: boolean;
            /** @description Why it would run later by itself. */
            runs_later?: string | null;
        };
        /** @description A message to an agent. */
        ChatBody: {
            /** @description Of a new session: the agent. Absent: `general-purpose`. */
            agent?: string | null;
            /**
             * @description How much of the session's past the model is sent: `compacted` puts a summary in the place
             *     of older turns that are too large for it, `whole` sends all of them. Default: `compacted`.
             */
            history?: components["schemas"]["HistoryWord"];
            /** @description Limits of this turn, below those that the agent has: `{"steps": 5}`. */
            limits?: components["schemas"]["LimitsBody"];
            /** @description Of a new session: a model or a role. Absent: the agent's own choice. */
            model?: string | null;
            /** @description The session that the message is added to. Absent: a new one. */
            session?: string | null;
            /** @description Whether the events come as they happen. Default: no. */
            stream?: boolean;
            /** @description The text of the message; not blank. */
            text: string;
            /**
             * @description Whether the answer comes at the end of the turn also where a person is asked something.
             *     Default: no; then it comes as soon as there is a question, with status 202 and the question.
             */
            wait?: boolean;
        };
        /** @description The answer in a completion. */
        Choice: {
            /** @description `stop`, `length` or `tool_calls`. */
            finish_reason: string;
            /** Format: int32 */
            index: number;
            logprobs?: unknown;
            message: components["schemas"]["CompletionMessage"];
        };
        /** @description A message of a client. `id` is its own and comes back in what answers it. */
        ClientMessage: {
            /** Format: int64 */
            after?: number | null;
            id?: string | null;
            session: string;
            /** @enum {string} */
            type: "subscribe";
        } | {
            id?: string | null;
            session: string;
            /** @enum {string} */
            type: "unsubscribe";
        } | {
            agent?: string | null;
            history?: components["schemas"]["HistoryWord"];
            id?: string | null;
            limits?: {
                [key: string]: number;
            };
            model?: string | null;
            session?: string | null;
            text: string;
            /** @enum {string} */
            type: "chat";
        } | {
            id?: string | null;
            session: string;
            subagent?: string | null;
            /** @enum {string} */
            type: "cancel";
        } | {
            answer?: components["schemas"]["Permission"] | null;
            id?: string | null;
            /** Format: int64 */
            question: number;
            session: string;
            text?: string | null;
            /** @enum {string} */
            type: "answer";
        } | {
            id?: string | null;
            /** @enum {string} */
            type: "ping";
        };
        /** @description A tool. */
        ColumnBody: {
            name: string;
            /** @description `stock`, `home` or `host`. */
            origin: string;
            /** @description Whether it says that it only reads. */
            read_only: boolean;
        };
        /** @description A chat completion. */
        Completion: {
            /** @description One. */
            choices: components["schemas"]["Choice"][];
            /**
             * Format: int64
             * @description In seconds since 1970.
             */
            created: number;
            id: string;
            /** @description The agent. */
            model: string;
            /** @description `chat.completion`. */
            object: string;
            service_tier: string;
            system_fingerprint?: string | null;
            usage: components["schemas"]["CompletionUsage"];
        };
        /**
         * @description A chat completion to be made. Other parameters are left out, and named in the header
         *     `X-Belljar-Ignored`; the guide lists those that are taken without an effect.
         */
        CompletionBody: {
            /**
             * Format: double
             * @description -2 to 2.
             */
            frequency_penalty?: number | null;
            /**
             * Format: int64
             * @description Most tokens of each answer of the model.
             */
            max_completion_tokens?: number | null;
            /**
             * Format: int64
             * @description The same, by its older name.
             */
            max_tokens?: number | null;
            /** @description The whole conversation, as OpenAI has it. */
            messages: unknown[];
            /** @description Notes of the caller's. */
            metadata?: unknown;
            /** @description The agent. */
            model: string;
            /** @description Whether a step may call several of them. Default: yes. */
            parallel_tool_calls?: boolean | null;
            /**
             * Format: double
             * @description -2 to 2.
             */
            presence_penalty?: number | null;
            /** @description How much the model should think. */
            reasoning_effort?: string | null;
            /** @description `text`, `json_object` or `json_schema`. */
            response_format?: unknown;
            /** Format: int64 */
            seed?: number | null;
            /** @description Words before which the answer ends: one, or up to four. */
            stop?: unknown;
            /**
             * @description `false`: the session is deleted when it has answered. Unless it is `true`, the turn is cancelled
             *     when the connection is closed.
             */
            store?: boolean | null;
            /** @description Whether the answer comes in chunks. */
            stream?: boolean | null;
            stream_options?: components["schemas"]["StreamOptions"] | null;
            /** Format: double */
            temperature?: number | null;
            /** @description `auto`, `none`, `required`, or a function of `tools`. */
            tool_choice?: unknown;
            /** @description Tools that the caller executes: functions. */
            tools?: unknown[] | null;
            /**
             * Format: double
             * @description The share of the likeliest tokens that are drawn from, 0 to 1.
             */
            top_p?: number | null;
        };
        /** @description The message in it. Foreign text: escape it before a person sees it. */
        CompletionMessage: {
            annotations: unknown[];
            content?: string | null;
            refusal?: string | null;
            role: string;
            /** @description Calls of the caller's tools. */
            tool_calls?: unknown[];
        };
        /** @description The usage of the whole turn, subagents included. */
        CompletionUsage: {
            /** Format: int64 */
            completion_tokens: number;
            completion_tokens_details: unknown;
            /** Format: int64 */
            prompt_tokens: number;
            /** @description `cached_tokens`: those that the provider read from its cache. */
            prompt_tokens_details: unknown;
            /** Format: int64 */
            total_tokens: number;
        };
        /** @description The things that are deleted with a session. */
        ContentsBody: {
            /**
             * Format: int64
             * @description Bytes of them.
             */
            attachment_bytes: number;
            /**
             * Format: int64
             * @description Files that tools handed over.
             */
            attachments: number;
            /**
             * @description Files that are changed on its overlays and that nobody has decided about; absent while a turn
             *     runs.
             */
            changes?: number | null;
            /**
             * Format: int64
             * @description Messages, of both sides.
             */
            messages: number;
            /**
             * Format: int64
             * @description Receipts of calls.
             */
            receipts: number;
            /** @description Whether a turn runs: then it cannot be deleted. */
            running: boolean;
            /**
             * Format: int64
             * @description Subagents.
             */
            subagents: number;
        };
        /** @description How many subagents there are, and how they are doing. */
        Counted: {
            /**
             * Format: int64
             * @default 0
             */
            cancelled: number;
            /**
             * Format: int64
             * @default 0
             */
            completed: number;
            /**
             * Format: int64
             * @default 0
             */
            failed: number;
            /**
             * Format: int64
             * @default 0
             */
            partial: number;
            /**
             * Format: int64
             * @default 0
             */
            queued: number;
            /**
             * Format: int64
             * @default 0
             */
            running: number;
            /**
             * Format: int64
             * @default 0
             */
            total: number;
        };
        /** @description How the subagents of a batch are doing. */
        Counts: {
            /** @default 0 */
            cancelled: number;
            /** @default 0 */
            completed: number;
            /** @default 0 */
            failed: number;
            /** @default 0 */
            partial: number;
            /** @default 0 */
            queued: number;
            /** @default 0 */
            running: number;
            /** @default 0 */
            total: number;
        };
        /** @description The usage of a day. */
        DayBody: {
            /** Format: int64 */
            cached_tokens: number;
            /** @description In UTC, `YYYY-MM-DD`. */
            day: string;
            /** Format: int64 */
            fuel: number;
            /** Format: int64 */
            input_tokens: number;
            /** Format: int64 */
            output_tokens: number;
            /** Format: int64 */
            steps: number;
            /** Format: int64 */
            tool_calls: number;
            /** Format: int64 */
            turns: number;
        };
        /** @description The definition of an agent, with what it is given. Its texts are its author's. */
        DefinitionBody: {
            /**
             * @description The command that unblocks it, for the operator's own terminal, where a grant would; for
             *     admins.
             */
            command?: string | null;
            /** @description The purpose of the agent. */
            description: string;
            /** @description The program that it was written for. */
            dialect: string;
            /** @description The model that it asks for; absent = the operator's choice. */
            model?: string | null;
            /**
             * @description Why no model would answer for it, where none would: its turns fail until one is named that
             *     does.
             */
            model_problem?: string | null;
            /** @description Its name for people. */
            name: string;
            /** @description Why it is not simply ready. */
            reasons: string[];
            /** @description `ready`, `ready with warnings` or `blocked`. */
            status: string;
            subagents?: components["schemas"]["SubagentsBody"] | null;
            /** @description The tools that it is given: `allow` or `ask`. */
            tools: {
                [key: string]: string;
            };
            /** @description `user-facing` or `internal`. */
            visibility: string;
        };
        /** @description How much was deleted. */
        Deleted: {
            /** Format: int64 */
            deleted: number;
        };
        /** @description A finding about a text. Foreign words in it are escaped. */
        DiagnosticBody: {
            /** @description A stable word for programs. */
            code: string;
            /**
             * Format: int32
             * @description The column in characters, from 1; 0 = the line as a whole.
             */
            column: number;
            /** @description The remedy. */
            hint?: string | null;
            /**
             * Format: int32
             * @description The line, from 1; 0 = the text as a whole.
             */
            line: number;
            /** @description The fault. */
            message: string;
            /** @description `error`, `warning` or `note`. */
            severity: string;
        };
        /** @description Which changes are thrown away. */
        DiscardBody: {
            /**
             * Format: int64
             * @description `as_of` of the changes that were looked at: where a turn has changed something since, nothing
             *     is done. Absent = whatever is there.
             */
            as_of?: number | null;
            /**
             * Format: int64
             * @description How many changes are meant, as `entries` of the list says; where there are others, nothing is
             *     done. Needed for more than 5,000, together with `as_of`.
             */
            entries?: number | null;
            /** @description Paths below `place`, each with all that is below it; absent or empty = all. */
            paths?: string[] | null;
            /** @description The directory, as agents see it; absent = `/workspace`. */
            place?: string | null;
        };
        /** @description Paths that were thrown away. */
        DiscardedBody: {
            discarded: string[];
        };
        /** @description An agent that waits in the home until the operator takes it into use. */
        DraftBody: {
            /** @description The command that takes it into use, where nothing stands in the way; for admins. */
            command?: string | null;
            /** @description Its purpose; absent where it cannot be understood. */
            description?: string | null;
            /** @description The first five obstacles. */
            reasons: string[];
            /** @description Its name. */
            slug: string;
            /** @description `ready to promote`, or `cannot be promoted`. */
            status: string;
        };
        /** @description A failure. */
        ErrorBody: {
            /** @description The fault. */
            error: components["schemas"]["ErrorDetail"];
        };
        /** @description The fault of a request. */
        ErrorDetail: {
            /** @description The fault as a word. */
            code?: string | null;
            /** @description The fault, and what to do about it. Escaped for a person's eyes. */
            message: string;
            /** @description The parameter at fault, where it is one. */
            param?: string | null;
            /** @description `invalid_request_error`, `rate_limit_error`, `insufficient_quota` or `server_error`. */
            type: string;
        };
        /** @description The answer. */
        Explained: {
            /** @description The agent, as requests name it. */
            agent: string;
            /** @description The command that would write them, for the operator's own terminal; for admins. */
            command?: string | null;
            /**
             * @description The first source that refuses, or that asks: `definition`, `manifest`, `grants`, `parent`,
             *     `hook` or `host`; absent where all allow.
             */
            decided_by?: string | null;
            /**
             * @description The lines of `belljar.toml` that would allow it, where the grants are what is missing; for
             *     admins.
             */
            grant?: string | null;
            /** @description The section that holds for each agent of its library. */
            library_section?: string | null;
            /** @description `allow`, `ask` or `deny`. */
            permission: string;
            /** @description The path or URL; absent = the call itself. */
            target?: string | null;
            /** @description The tool. */
            tool: string;
            /** @description The word of each source. */
            votes: components["schemas"]["VoteBody"][];
        };
        /** @description The rights of an agent that a person starts. */
        GrantsBody: {
            /** @description Its identity. */
            agent: string;
            /**
             * Format: int64
             * @description The seconds that it waits for a subagent before that runs on in the background; absent: to its end.
             */
            auto_background_seconds?: number | null;
            /** @description Hosts: a request has to fit a rule of every list. */
            hosts: components["schemas"]["HostsBody"][];
            /** @description Its limits. */
            limits: {
                [key: string]: number;
            };
            /** @description Its directories, as it sees them: path to `read` or `read-write`. */
            mounts: {
                [key: string]: string;
            };
            /** @description Why it is not simply ready. */
            reasons: string[];
            /** @description Names of secrets that the host joins to its requests. */
            secrets: string[];
            /** @description `ready`, `ready with warnings` or `blocked`. */
            status: string;
            /** @description Its tools: `allow`, or `ask` where a person is asked before each call. */
            tools: {
                [key: string]: string;
            };
            /** @description The requests that it does not get. */
            withheld: components["schemas"]["WithheldBody"][];
        };
        /** @description That all is well. */
        Health: {
            /** @description `ok`. */
            status: string;
        };
        /**
         * @description The words of `history`.
         * @enum {string}
         */
        HistoryWord: "compacted" | "whole";
        /** @description The hosts that one source lists. */
        HostsBody: {
            /** @description Rules. */
            rules: string[];
            /** @description Who lists them. */
            source: string;
        };
        /** @description The items of an input. */
        InputItems: {
            data: unknown[];
            first_id?: string | null;
            has_more: boolean;
            last_id?: string | null;
            /** @description `list`. */
            object: string;
        };
        /** @description A path that was left, and why. */
        LeftBody: {
            path: string;
            why: string;
        };
        /** @description A file that is no agent. */
        LeftOutBody: {
            path: string;
            why: string;
        };
        /** @description The installed libraries, by name. */
        Libraries: {
            libraries: components["schemas"]["LibraryBody"][];
            /**
             * @description The value to send as `after` for the next ones; absent where there are none. A page ends
             *     behind 2 MiB; one library may be larger.
             */
            next?: string | null;
            /** @description The signs that are looked for. */
            rules: components["schemas"]["RuleBody"][];
        };
        /** @description An agent of a library. Its texts are its author's. */
        LibraryAgentBody: {
            /** @description The agent, as requests name it. */
            agent: string;
            /** @description The requests of its file. */
            asks: string[];
            /** @description The command that unblocks it, where it is blocked and a grant would; for admins. */
            command?: string | null;
            /** @description The digest of the file that was agreed to: SHA-256, in hex. */
            digest: string;
            /** @description Its file, below the library's directory. */
            file: string;
            /** @description The rights that it gets. */
            gets: string[];
            /** @description The requests that it does not get. */
            missing: string[];
            /** @description Why it is not simply ready. */
            reasons: string[];
            slug: string;
            /** @description `ready`, `ready with warnings` or `blocked`. */
            status: string;
            /** @description The signs that a person should look at. */
            suspicions: components["schemas"]["SuspicionBody"][];
        };
        /** @description A library. */
        LibraryBody: {
            agents: components["schemas"]["LibraryAgentBody"][];
            /** @description Its files that are no agents now. */
            left_out: components["schemas"]["LeftOutBody"][];
            name: string;
            /** @description The id of the library's git commit; absent for a directory or an archive. */
            revision?: string | null;
            /** @description Where it came from. Foreign text. */
            source: string;
            /** @description `ok`, or how its files are not what was agreed to: those are not used. */
            state: string;
        };
        /** @description A limit. */
        LimitBody: {
            /**
             * Format: int64
             * @description The value that holds without a grant.
             */
            default: number;
            key: string;
            unit: string;
            /** @description The use that it bounds. */
            why: string;
        };
        LimitsBody: {
            /** @description How deep calls of tools by tools may stand in each other: 1 = a tool that the model called calls others, 2 = those call others too. */
            call_depth?: number;
            /** @description Wall time of one tool call, host work and waiting included. */
            call_timeout_seconds?: number;
            /** @description Outgoing connections open at the same time. */
            connections?: number;
            /** @description Bytes sent over the network: request lines, headers and bodies. */
            egress_bytes?: number;
            /** @description Fuel of all tool calls together: ten calls at their limit. */
            fuel?: number;
            /** @description Fuel of one tool call: about two seconds of a tight loop at 11 G fuel a second. */
            fuel_per_call?: number;
            /** @description Bytes received over the network, headers and bodies. */
            ingress_bytes?: number;
            /** @description Lines of `log` and `progress` kept of one call. */
            log_lines?: number;
            /** @description Linear memory and tables of all stores of the jar together. One pool slot holds as much. */
            memory_bytes?: number;
            /** @description Calls that tools make, at all depths, below one call of the model. */
            nested_calls?: number;
            /** @description Files and directories open at the same time in one store, mounts included. */
            open_files?: number;
            /** @description What one tool call may return, attachments included; more is an error, not a cut. */
            output_bytes?: number;
            /** @description What all tool calls together may return. */
            output_total_bytes?: number;
            /** @description Wall time to the first token of each step (`prefillTimeoutSeconds`). Local models read a long prompt slowly. */
            prefill_timeout_seconds?: number;
            /** @description Bytes read from mounts. */
            read_bytes?: number;
            /** @description Bytes of stdout and of stderr kept of one call; more is dropped and counted. */
            stdio_bytes?: number;
            /** @description Answers of the model with their tool calls (`maxTurns`, `--max-steps`). Long enough for real work, short enough that a looping model ends. */
            steps?: number;
            /** @description Wall time of the whole run (`timeoutSeconds`). */
            timeout_seconds?: number;
            /** @description Input and output tokens of all steps together: thirty steps of 10,000 tokens each. At three dollars for a million tokens, less than one is lost with a run that goes wrong; at 80 % the person is told. */
            tokens?: number;
            /** @description Bytes written to mounts, growth by truncation included. */
            write_bytes?: number;
        };
        /** @description The two, as they are described. */
        LoginBody: {
            /** @description A key, `bj_…`. */
            key: string;
        } | {
            /** @description The token of a link that `belljar serve` has printed, `bo_…`. It opens once. */
            once: string;
        };
        /** @description Who calls, and the server that answers. */
        Me: {
            /** @description The name in the audit log: `key:<id>`, `login:<id>`, or `local` where there are no keys. */
            actor: string;
            /** @description Whether callers need a key. */
            keys: boolean;
            /**
             * Format: int64
             * @description When the login ends, in milliseconds since 1970; absent where a key was sent, or none is
             *     needed.
             */
            login_ends?: number | null;
            /** @description Whether it is the operator of this server: an admin of the operator's own tenant. */
            operator: boolean;
            /**
             * @description The digest of the page that this server has; another than that of the page which asks says
             *     that the page is older or newer.
             */
            page: string;
            /** @description `admin`, `member` or `read-only`. */
            scope: string;
            /** @description The tenant. */
            tenant: string;
            /** @description The version of belljar. */
            version: string;
        };
        /** @description A message. Its texts are foreign. */
        MessageBody: {
            /**
             * @description Who cancelled the turn, by the name in the audit log: `key:<id>`, `login:<id>` or `local`;
             *     absent where nobody did.
             */
            cancelled_by?: string | null;
            /**
             * Format: int64
             * @description When it was added, in milliseconds since 1970.
             */
            created: number;
            /** @description Its id. */
            id: string;
            /** @description With `full`: all that the turn added to the conversation. */
            messages?: unknown;
            /** @description Known facts about it: model, usage, counts of subagents. */
            metadata: unknown;
            /**
             * Format: int64
             * @description Its place in the session, from 1.
             */
            place: number;
            /** @description `user` or `assistant`. */
            role: string;
            /** @description `in_flight`, `completed`, `partial`, `failed`, `cancelled` or `interrupted`. */
            status: string;
            /** @description The words of the person, or the conclusion of the agent. */
            text: string;
            /**
             * Format: int64
             * @description When it was last changed, in milliseconds since 1970.
             */
            updated: number;
        };
        /** @description The latest messages of a session, the oldest of them first. */
        Messages: {
            messages: components["schemas"]["MessageBody"][];
            /**
             * Format: int64
             * @description The value to send as `before` for older ones; absent where there are none. A page ends
             *     behind 2 MiB of what is stored, with fewer messages than `limit`.
             */
            next?: number | null;
            summary?: components["schemas"]["SummaryBody"] | null;
        };
        /** @description An agent. */
        Model: {
            /**
             * Format: int64
             * @description Not known: 0.
             */
            created: number;
            /** @description Its name, as `model` takes it. */
            id: string;
            /** @description `model`. */
            object: string;
            /** @description `belljar`. */
            owned_by: string;
        };
        /** @description The agents. */
        Models: {
            data: components["schemas"]["Model"][];
            /** @description `list`. */
            object: string;
        };
        /** @description An agent to keep. */
        NewAgentBody: {
            /** @description Its name: lower-case letters and digits, joined by `-`. */
            slug: string;
            /** @description The markdown file. */
            text: string;
        };
        /**
         * @description A response to be made. Other parameters are left out, and named in the header `X-Belljar-Ignored`; the
         *     guide lists those that are taken without an effect, and the two that are refused.
         */
        NewResponseBody: {
            /** @description Whether it is answered at once, and read later. */
            background?: boolean | null;
            /**
             * Format: double
             * @description -2 to 2.
             */
            frequency_penalty?: number | null;
            /** @description A text, or items. */
            input: unknown;
            /** @description Words beside the input, for this response alone. The agent's own prompt stays. */
            instructions?: string | null;
            /**
             * Format: int64
             * @description Most tokens of each answer of the model.
             */
            max_output_tokens?: number | null;
            /** @description Notes of the caller's. */
            metadata?: unknown;
            /** @description The agent. */
            model: string;
            /** @description Whether a step may call several of them. Default: yes. */
            parallel_tool_calls?: boolean | null;
            /**
             * Format: double
             * @description -2 to 2.
             */
            presence_penalty?: number | null;
            /** @description The response whose conversation this one continues. */
            previous_response_id?: string | null;
            /** @description `effort`: how much the model should think. */
            reasoning?: unknown;
            /** Format: int64 */
            seed?: number | null;
            /** @description Words before which the answer ends, as chat completions have them: one, or up to four. */
            stop?: unknown;
            /**
             * @description `false`: the session is deleted when it has answered, and the turn is cancelled when the connection
             *     is closed before.
             */
            store?: boolean | null;
            /** @description Whether it comes event by event. */
            stream?: boolean | null;
            /** Format: double */
            temperature?: number | null;
            /** @description `format`: `text`, `json_object` or `json_schema`. */
            text?: unknown;
            /** @description `auto`, `none`, `required`, or a function of `tools`. */
            tool_choice?: unknown;
            /** @description Tools that the caller executes: functions. */
            tools?: unknown[] | null;
            /**
             * Format: double
             * @description The share of the likeliest tokens that are drawn from, 0 to 1.
             */
            top_p?: number | null;
        };
        /** @description The usage of a day, of an agent, with a model: each of them only where `by` names it. */
        PartBody: {
            /**
             * @description The agent's identity. A subagent counts as itself, and not as the agent above it. Empty: of
             *     a time before agents were counted apart.
             */
            agent?: string | null;
            /** Format: int64 */
            cached_tokens: number;
            /** @description In UTC, `YYYY-MM-DD`. */
            day?: string | null;
            /** Format: int64 */
            fuel: number;
            /** Format: int64 */
            input_tokens: number;
            /** @description The model; empty as well, and where none was chosen. */
            model?: string | null;
            /** Format: int64 */
            output_tokens: number;
            /** Format: int64 */
            steps: number;
            /** Format: int64 */
            tool_calls: number;
            /**
             * Format: int64
             * @description Turns that a person or program began with this agent.
             */
            turns: number;
        };
        /**
         * @description A word of permission.
         * @enum {string}
         */
        Permission: "yes" | "for_run" | "no";
        /** @description The changes to one directory. */
        PlaceBody: {
            /**
             * Format: int64
             * @description Lines that are new, of the files whose lines were counted.
             */
            added: number;
            /**
             * Format: int64
             * @description How many changed in the workspace too, in a way that does not merge.
             */
            conflicts: number;
            /**
             * Format: int64
             * @description Changes that there are, directories among them. `files` has at most 5,000: `skip` lists the
             *     others, and who decides about more than 5,000 at once says how many they are.
             */
            entries: number;
            /** @description First what would run later, then what is in conflict, then the others; each by path. */
            files: components["schemas"]["ChangeBody"][];
            /** @description With `patch=true`: the same of files below `.git`, which `git apply` refuses. To be read. */
            git_patch?: string | null;
            /**
             * @description An apply was interrupted, and a part of these changes may stand in the workspace by now. The next
             *     `apply`, `discard` or `undo` finishes it or takes it back; a look writes nothing.
             */
            interrupted: boolean;
            /**
             * Format: int64
             * @description Files that are changed.
             */
            of: number;
            /** @description With `patch=true`: what `git apply` takes. */
            patch?: string | null;
            /** @description Where agents see the directory, like `/workspace`. */
            path: string;
            /**
             * Format: int64
             * @description Lines that are gone, of the same.
             */
            removed: number;
            /**
             * Format: int64
             * @description How many would run later by themselves.
             */
            run_later: number;
            /**
             * Format: int64
             * @description Files whose lines were not counted: those that are not in `files`, and those that were left after
             *     10 seconds.
             */
            uncounted: number;
        };
        /** @description The two forms of it, as they are described. */
        PreviewBody: {
            /** @description Of a new session: the agent. Absent: `general-purpose`. */
            agent?: string | null;
            /** @description How much of the session's past would be sent, as in a turn. Default: `compacted`. */
            history?: components["schemas"]["HistoryWord"];
            /** @description Of a new session: a model or a role. */
            model?: string | null;
            /** @description The session that the message would be added to. Absent: a new one. */
            session?: string | null;
            /** @description The text that would be sent. */
            text: string;
        } | {
            /** @description The text of the agent. */
            definition: string;
            /** @description Changes nothing: there is no past. */
            history?: components["schemas"]["HistoryWord"];
            /** @description A model or a role. */
            model?: string | null;
            /** @description The text that would be sent. */
            text: string;
        };
        /** @description The request that the model would be sent. */
        Previewed: {
            /** @description The parts of the request in its order, with what each costs. */
            blocks: components["schemas"]["BlockBody"][];
            /** @description The model. */
            model: string;
            /** @description Notes that a person should know about it. */
            notes: string[];
            /** @description The request: `system`, `messages`, `tools` and settings. */
            request: unknown;
        };
        /** @description Problem details as they are sent. */
        ProblemBody: {
            /** @description The fault of this request. Escaped for a person's eyes. */
            detail: string;
            /** @description The remedy. */
            hint?: string | null;
            limit?: components["schemas"]["ReachedLimit"] | null;
            /**
             * Format: int32
             * @description The status of the response.
             */
            status: number;
            /** @description The meaning of the kind. */
            title: string;
            /**
             * @description Which kind of problem: a stable path below this server.
             * @example /problems/not-found
             */
            type: string;
        };
        /**
         * @description A question, each kind in one piece: programs that are made from the description read no other. Its
         *     texts are foreign: escape them before a person sees them.
         */
        QuestionBody: {
            /** @description The path of the agent that asks. */
            agent: string;
            /** @description With which arguments. */
            arguments: string;
            /**
             * Format: int64
             * @description When it was asked, in milliseconds since 1970.
             */
            asked: number;
            /** @description Rules of the hosts that it could reach. */
            hosts: string[];
            /**
             * Format: int64
             * @description Its number in the session.
             */
            id: number;
            /** @enum {string} */
            kind: "permission";
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The directories that the call could touch, whatever its arguments say. */
            mounts: components["schemas"]["ReachedBody"][];
            /** @description Names of the secrets that the host would join to its requests. */
            secrets: string[];
            /** @description The session. */
            session: string;
            /** @description The tool. */
            tool: string;
        } | {
            /** @description The path of the agent that asks. */
            agent: string;
            /**
             * Format: int64
             * @description When it was asked, in milliseconds since 1970.
             */
            asked: number;
            /**
             * Format: int64
             * @description Its number in the session.
             */
            id: number;
            /** @enum {string} */
            kind: "clarify";
            /** @description The turn: the agent's message. */
            message: string;
            /** @description Answers to choose from. */
            options: string[];
            /** @description The question. */
            question: string;
            /** @description The session. */
            session: string;
        };
        /** @description The questions that wait for an answer. */
        Questions: {
            questions: components["schemas"]["QuestionBody"][];
        };
        /** @description A directory that a call could touch. */
        ReachedBody: {
            /** @description `read`, `overlay` or `read-write`. */
            access: string;
            /** @description The path, as the agent sees it. */
            path: string;
        };
        /** @description A limit of a day that a request would pass. */
        ReachedLimit: {
            /**
             * Format: int64
             * @description The rest of it.
             */
            left: number;
            /**
             * Format: int64
             * @description How much may be used in a day.
             */
            most: number;
            /** @description The operator's setting: `tenant_tokens_per_day` or `tenant_fuel_per_day`. */
            name: string;
            /** @description When there is as much again, in RFC 3339. */
            resets: string;
        };
        /** @description A directory that a call can touch. */
        ReachedMount: {
            /** @description `read`, `overlay` or `read-write`. */
            access: string;
            /** @description The path, as the agent sees it, for example `/workspace`. */
            path: string;
        };
        /** @description That it takes turns, and of how many tenants it does not. */
        Readiness: {
            /** @description `ok`. */
            status: string;
            /**
             * @description Tenants whose requests are answered 503, because of their files or settings. The log and
             *     `belljar tenants list` say why.
             */
            tenants_not_served: number;
            /**
             * @description Tenants that are served by the settings that were valid last, because those of now are not.
             *     The log says why.
             */
            tenants_on_older_settings: number;
            /**
             * @description Tenants that are served without a part of their grants or settings until the server is
             *     started again: its OS sandbox was made without it. The log names the part, and so does
             *     `belljar tenants list`. One that nobody has called is counted as it was when the server
             *     looked at it first.
             */
            tenants_waiting_for_restart: number;
        };
        /** @description The record of one tool call. */
        ReceiptBody: {
            agent: string;
            /** @description The whole receipt. */
            body: unknown;
            call_id: string;
            /** Format: int64 */
            created: number;
            ending: string;
            /** Format: int64 */
            fuel: number;
            id: string;
            message: string;
            /** Format: int64 */
            micros: number;
            ok: boolean;
            /** Format: int64 */
            step: number;
            tool: string;
        };
        /** @description The latest receipts of a session, the oldest of them first. */
        Receipts: {
            /**
             * @description The value to send as `before` for older ones; absent where there are none. A page ends
             *     behind 2 MiB of what is stored, with fewer than `limit`.
             */
            next?: string | null;
            receipts: components["schemas"]["ReceiptBody"][];
        };
        /** @description A response. */
        ResponseBody: {
            background: boolean;
            /**
             * Format: int64
             * @description The same; `null` until it is completed.
             */
            completed_at?: number | null;
            /**
             * Format: int64
             * @description In seconds since 1970.
             */
            created_at: number;
            error?: unknown;
            /** Format: double */
            frequency_penalty: number;
            id: string;
            incomplete_details?: unknown;
            instructions?: string | null;
            /** Format: int64 */
            max_output_tokens?: number | null;
            /** Format: int64 */
            max_tool_calls?: number | null;
            metadata: unknown;
            /** @description The agent. */
            model: string;
            /** @description `response`. */
            object: string;
            /**
             * @description Messages of the agent, one for each step that said something, and its calls of the caller's tools.
             *     Foreign text: escape it before a person sees it.
             */
            output: unknown[];
            parallel_tool_calls: boolean;
            /** Format: double */
            presence_penalty: number;
            previous_response_id?: string | null;
            prompt_cache_key: unknown;
            reasoning?: unknown;
            safety_identifier: unknown;
            service_tier: string;
            /** @description `queued`, `in_progress`, `completed`, `incomplete`, `failed` or `cancelled`. */
            status: string;
            store: boolean;
            /** Format: double */
            temperature: number;
            text: unknown;
            tool_choice: unknown;
            tools: unknown[];
            /** Format: int64 */
            top_logprobs: number;
            /** Format: double */
            top_p: number;
            truncation: unknown;
            /** @description `null` until it has ended. */
            usage?: unknown;
            user: unknown;
        };
        /** @description That a response is gone. */
        ResponseDeleted: {
            /** @description `true`. */
            deleted: boolean;
            id: string;
            /** @description `response`. */
            object: string;
        };
        /** @description All else that an agent has. */
        RestBody: {
            /**
             * Format: int64
             * @description The seconds that it waits for a subagent before that runs on in the background; absent: to its end.
             */
            auto_background_seconds?: number | null;
            /** @description Hosts: a request has to fit a rule of every list. */
            hosts: components["schemas"]["HostsBody"][];
            /** @description Its limits. */
            limits: {
                [key: string]: number;
            };
            /** @description Its directories, as it sees them: path to access. */
            mounts: {
                [key: string]: string;
            };
            /** @description Why it is not simply ready. */
            reasons: string[];
            /** @description Names of secrets that the host joins to its requests. */
            secrets: string[];
            /** @description `ready`, `ready with warnings` or `blocked`. */
            status: string;
            /** @description The requests that it does not get. */
            withheld: components["schemas"]["WithheldBody"][];
        };
        /** @description Whether there was a turn to resume. */
        Resumed: {
            /**
             * @description `false`: there was no interrupted turn that could be resumed. One that is marked as interrupted
             *     has ended, and the next message follows it.
             */
            resumed: boolean;
        };
        /** @description The rights of all agents. */
        RightsBody: {
            /** @description The agents, in the catalogue's order. */
            agents: components["schemas"]["RowBody"][];
            /** @description The limits that there are. */
            limits: components["schemas"]["LimitBody"][];
            /**
             * @description The value to send as `after` for the next ones; absent where there are none. A page has at
             *     most 100 agents and ends behind 2 MiB.
             */
            next?: string | null;
            /** @description The tools, in the order of the cells. */
            tools: components["schemas"]["ColumnBody"][];
        };
        /** @description A part that a model plays. */
        RoleBody: {
            /** @description Whether that is the main model, since no other was chosen for it. */
            by_main: boolean;
            /** @description The name of the model that plays it; absent where none does. */
            model?: string | null;
            /** @description Its name: `main`, `fast`, `strong`, `compaction` or `fallback`. */
            role: string;
        };
        /** @description The models that may be named: by a role, or by a name of their own. */
        Roles: {
            /**
             * @description The names of the configured models. Any other name is refused; where the list is empty, one
             *     model answers whatever is named.
             */
            models: string[];
            /** @description Every role there is. */
            roles: components["schemas"]["RoleBody"][];
        };
        /** @description An agent. */
        RowBody: components["schemas"]["RestBody"] & {
            /** @description The agent, as requests name it. */
            agent: string;
            /**
             * @description For each tool: `allow`, `ask:SOURCE`, `deny:SOURCE`, or `absent` where its own file names tools
             *     and not this one; `no-host` where it may be called and works with hosts, of which none is granted.
             *     SOURCE is `definition`, `manifest`, `grants`, `parent`, `hook` or `host`.
             */
            cells: string[];
            /** @description The command that unblocks it, where it is blocked and a grant would; for admins. */
            command?: string | null;
            /** @description `home`, `workspace`, or `library/NAME`. */
            scope: string;
            slug: string;
        };
        /** @description A rule by which signs are found. */
        RuleBody: {
            name: string;
            why: string;
        };
        /** @description The turns that run. */
        Running: {
            turns: components["schemas"]["RunningBody"][];
        };
        /** @description A turn that runs. */
        RunningBody: {
            /** @description The agent. */
            agent: string;
            /** @description The agent's message. */
            message: string;
            /** @description Its session. */
            session: string;
            /**
             * Format: int64
             * @description When it began, in milliseconds since 1970.
             */
            started: number;
            /** @description Its tenant. */
            tenant: string;
            /** @description The title of the session; empty while the turn waits for a place. Foreign text. */
            title: string;
        };
        /**
         * @description How an agent ended, in one word.
         * @enum {string}
         */
        RunStatus: "completed" | "partial" | "failed" | "cancelled";
        /** @description Amounts that were used. */
        RunUsage: {
            /**
             * Format: int64
             * @description Input tokens from the provider's cache.
             */
            cached_tokens: number;
            /**
             * Format: int64
             * @description Fuel of all tool calls.
             */
            fuel: number;
            /**
             * Format: int64
             * @description Input tokens, cached ones included.
             */
            input_tokens: number;
            /**
             * Format: int64
             * @description Output tokens.
             */
            output_tokens: number;
            /**
             * Format: int64
             * @description Steps: answers of the model, each with its calls.
             */
            steps: number;
            /**
             * Format: int64
             * @description Tool calls, refused ones included.
             */
            tool_calls: number;
        };
        /** @description A message of the server. Events come as `{"type": "event", "event": …}` beside these. */
        ServerMessage: {
            id?: string | null;
            session: string;
            /** @enum {string} */
            type: "subscribed";
        } | {
            id?: string | null;
            session: string;
            /** @enum {string} */
            type: "unsubscribed";
        } | {
            id?: string | null;
            message: string;
            session: string;
            /** @enum {string} */
            type: "accepted";
        } | (components["schemas"]["Answered"] & {
            id?: string | null;
        } & {
            /** @enum {string} */
            type: "done";
        }) | {
            cancelled: boolean;
            id?: string | null;
            session: string;
            /** @enum {string} */
            type: "cancelled";
        } | {
            id?: string | null;
            /** Format: int64 */
            question: number;
            session: string;
            /** @enum {string} */
            type: "answered";
        } | {
            id?: string | null;
            problem: components["schemas"]["ProblemBody"];
            /** @enum {string} */
            type: "error";
        } | {
            id?: string | null;
            /** @enum {string} */
            type: "pong";
        };
        /** @description A session. */
        SessionBody: {
            /** @description The agent's identity. */
            agent: string;
            /**
             * Format: int64
             * @description When it began, in milliseconds since 1970.
             */
            created: number;
            /** @description Its id. */
            id: string;
            /** @description The beginning of it: `chat`, `run` or `team` on the command line, `api` here. */
            kind: string;
            /** @description The model; empty = the agent's own choice. */
            model: string;
            /** @description Whether a turn of it runs now. */
            running: boolean;
            /** @description The beginning of what was said first. Foreign text. */
            title: string;
            /**
             * Format: int64
             * @description When something was last added, in milliseconds since 1970.
             */
            updated: number;
        };
        /** @description The changes of a session, by directory. */
        SessionChanges: {
            /**
             * Format: int64
             * @description The id of the session's last event by now: whoever decides about what is shown here sends it as
             *     `as_of`.
             */
            as_of: number;
            places: components["schemas"]["PlaceBody"][];
            /**
             * @description The directories whose last apply `undo` may take back, as agents see them. One that has no
             *     changes any more is among them too.
             */
            undoable: string[];
        };
        /** @description An event of a session. Later versions have more kinds and more fields: pass over what you do not know. Its texts are foreign: escape them before a person sees them. */
        SessionEvent: {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            id: string;
            /** @description The turn: the agent's message. */
            message: string;
            model: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            tools: string[];
            /** @enum {string} */
            type: "run_started";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
            workspace: string;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            kept: number;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            /** @enum {string} */
            type: "run_resumed";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** @description The turn: the agent's message. */
            message: string;
            model: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            turns: number;
            /** @enum {string} */
            type: "history_compacting";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            /** Format: int64 */
            tokens_after: number;
            /** Format: int64 */
            tokens_before: number;
            turns: number;
            /** @enum {string} */
            type: "history_compacted";
            used: components["schemas"]["RunUsage"];
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            last: boolean;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            /** Format: int64 */
            step: number;
            /** @enum {string} */
            type: "step_started";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            text: string;
            /** @enum {string} */
            type: "text_delta";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            text: string;
            /** @enum {string} */
            type: "thought_delta";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            arguments: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            call_id: string;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** @description The turn: the agent's message. */
            message: string;
            parent?: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            /** Format: int64 */
            step: number;
            tool: string;
            /** @enum {string} */
            type: "tool_call_started";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            call_id: string;
            /** Format: int64 */
            done: number;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            /** @description Not `message`: of a session's events, that is the turn. Older programs wrote it there. */
            text: string;
            tool: string;
            /** Format: int64 */
            total?: number;
            /** @enum {string} */
            type: "tool_progress";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            /** Format: int64 */
            bytes: number;
            call_id: string;
            denials: number;
            ending: string;
            /** @description The problem, for the person; foreign text, cut at 2,000 characters. */
            error?: string;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** Format: int64 */
            fuel: number;
            /** @description The turn: the agent's message. */
            message: string;
            /** Format: int64 */
            micros: number;
            ok: boolean;
            parent?: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            /** Format: int64 */
            step: number;
            tool: string;
            /** @enum {string} */
            type: "tool_call_finished";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            background: boolean;
            batch: string;
            children: components["schemas"]["BatchChild"][];
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            max_concurrent: number;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            title?: string;
            /** @enum {string} */
            type: "subagent_batch_start";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            batch: string;
            counts: components["schemas"]["Counts"];
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            summary: string;
            /** @enum {string} */
            type: "subagent_batch_end";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            batch: string;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            id: string;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            /** @enum {string} */
            type: "subagent_background";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            batch: string;
            child: string;
            counts: components["schemas"]["Counts"];
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            /** @enum {string} */
            type: "subagent_update";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            batch: string;
            child: string;
            counts: components["schemas"]["Counts"];
            error?: string;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            status: components["schemas"]["RunStatus"];
            /** Format: int64 */
            steps: number;
            /** Format: int64 */
            tokens: number;
            /** @enum {string} */
            type: "subagent_done";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            arguments: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            call_id: string;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            hosts: string[];
            /** Format: int64 */
            id: number;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description Older programs do not say it, nor the next two. */
            mounts: components["schemas"]["ReachedMount"][];
            /** @description The run. */
            run: string;
            secrets: string[];
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            tool: string;
            /** @enum {string} */
            type: "permission_asked";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            answer: components["schemas"]["Approval"];
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            call_id: string;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** Format: int64 */
            id: number;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            tool: string;
            /** @enum {string} */
            type: "permission_answered";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** Format: int64 */
            id: number;
            /** @description The turn: the agent's message. */
            message: string;
            options: string[];
            private?: boolean;
            /** @description For a private question, the storable part. */
            question: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            /** @enum {string} */
            type: "question_asked";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            answered: boolean;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** Format: int64 */
            id: number;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            /** @enum {string} */
            type: "question_answered";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            items: components["schemas"]["TodoItem"][];
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            /** @enum {string} */
            type: "todos";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            decision: string;
            event: string;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            hook: string;
            /** @description The turn: the agent's message. */
            message: string;
            /** Format: int64 */
            micros: number;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            tool?: string;
            /** @enum {string} */
            type: "hook_ran";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            id: string;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            stages: number;
            /** @enum {string} */
            type: "team_started";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
            workspace: string;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            agents: string[];
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** @description The turn: the agent's message. */
            message: string;
            of: number;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            stage: number;
            /** @enum {string} */
            type: "team_stage_started";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            error?: string;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            stage: number;
            status: components["schemas"]["RunStatus"];
            /** @enum {string} */
            type: "team_stage_finished";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** Format: int64 */
            after_ms: number;
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            /** Format: int32 */
            attempt: number;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** @description The turn: the agent's message. */
            message: string;
            reason: string;
            replaces?: boolean;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            /** @enum {string} */
            type: "retry";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            /** @description As that of [`EventKind::ToolProgress`]. */
            text: string;
            /** @enum {string} */
            type: "warning";
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** Format: int64 */
            limit: number;
            /** @description The turn: the agent's message. */
            message: string;
            /** @enum {string} */
            meter: "steps" | "tokens" | "fuel" | "memory" | "output" | "read" | "write" | "egress" | "ingress";
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            /** @enum {string} */
            type: "budget_warning";
            /** Format: int64 */
            used: number;
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        } | {
            /** @description The path of the agent that it is about: `main/scout#0`. */
            agent: string;
            /**
             * Format: int64
             * @description When it happened, in milliseconds since 1970.
             */
            at: number;
            error?: string;
            /**
             * Format: int64
             * @description Counts from 1 in the session, without gaps.
             */
            event_id: number;
            /** @description The turn: the agent's message. */
            message: string;
            /** @description The run. */
            run: string;
            /**
             * Format: int64
             * @description Counts from 0 in the run, without gaps.
             */
            seq: number;
            /** @description The session. */
            session: string;
            status: components["schemas"]["RunStatus"];
            total: components["schemas"]["RunUsage"];
            /** @enum {string} */
            type: "run_finished";
            usage: components["schemas"]["RunUsage"];
            /**
             * Format: int64
             * @description The version of the schema.
             */
            v: number;
        };
        /** @description Sessions, those that were last added to first. */
        Sessions: {
            /** @description The value to send as `before` for the next ones; absent where there are none. */
            next?: string | null;
            sessions: components["schemas"]["SessionBody"][];
        };
        /** @description How a stream is to be. */
        StreamOptions: {
            include_usage?: boolean;
        };
        /** @description A subagent. Its texts are foreign. */
        SubagentBody: {
            agent: string;
            /** Format: int64 */
            cached_tokens: number;
            /**
             * @description Who cancelled it: a caller, by the name in the audit log; `parent`: the agent above it asked
             *     for its end, or ended without it; `limit`: a limit of the agent above it was used up. Absent
             *     where nobody did.
             */
            cancelled_by?: string | null;
            chain_id: string;
            context?: string | null;
            /** Format: int64 */
            created: number;
            /** Format: int64 */
            depth: number;
            display_name: string;
            /** Format: int64 */
            ended?: number | null;
            error?: string | null;
            /** Format: int64 */
            fuel: number;
            goal: string;
            id: string;
            /** Format: int64 */
            input_tokens: number;
            model: string;
            /** Format: int64 */
            output_tokens: number;
            parent_agent: string;
            parent_message_id: string;
            parent_subagent_id?: string | null;
            parent_tool_call_id: string;
            result: unknown;
            /** Format: int64 */
            sort_order: number;
            /** @description `preset`, `fork` or `team`. */
            source: string;
            /** Format: int64 */
            started?: number | null;
            /** @description `queued`, `running`, `completed`, `partial`, `failed` or `cancelled`. */
            status: string;
            summary: string;
            tool_names: string[];
        };
        /** @description The subagents of a session, by turn and in their order there. */
        Subagents: {
            /**
             * @description The value to send as `after` for the next ones; absent where there are none. A page ends
             *     behind 2 MiB of what is stored, with fewer than `limit`.
             */
            next?: string | null;
            subagents: components["schemas"]["SubagentBody"][];
        };
        /** @description The words of an agent about delegating. It narrows what is granted. */
        SubagentsBody: {
            /** @description The agents that it may delegate to. */
            allowed_agents?: string[] | null;
            /** @description The tools that its subagents may use. */
            allowed_tools?: string[] | null;
            /** @description Whether it may delegate at all. */
            enabled?: boolean | null;
            /**
             * Format: int32
             * @description How many subagents may run at the same time.
             */
            max_concurrent?: number | null;
        };
        /** @description A summary of the older messages of a session. Foreign text: a model wrote it. */
        SummaryBody: {
            /**
             * Format: int64
             * @description When it was made, in milliseconds since 1970.
             */
            created: number;
            /** @description The text of the summary. */
            text: string;
            /**
             * Format: int64
             * @description The place of the last message that it stands for.
             */
            upto: number;
        };
        /** @description A sign in an agent's file. */
        SuspicionBody: {
            /** @description The text; escaped. */
            found: string;
            /**
             * Format: int32
             * @description The line, from 1.
             */
            line: number;
            /** @description The name of the rule. */
            rule: string;
        };
        /** @description One thing on an agent's list. */
        TodoItem: {
            /** @description The task. */
            content: string;
            /** @description How far it is. */
            status: components["schemas"]["TodoStatus"];
        };
        /**
         * @description How far a thing to be done is.
         * @enum {string}
         */
        TodoStatus: "pending" | "in_progress" | "completed" | "cancelled";
        /** @description A tool. Its texts are its author's. */
        ToolBody: {
            /** @description The requests of its manifest. */
            asks: components["schemas"]["AsksBody"];
            /** @description The component that offers it; absent where the host itself does. */
            component?: string | null;
            /** @description The description that a model reads. */
            description: string;
            /**
             * @description SHA-256, in hex, of its component, or of what was accepted of it; absent where the host itself
             *     offers it.
             */
            digest?: string | null;
            /** @description The interfaces that its component imports, by name. */
            imports: string[];
            /** @description Its name. */
            name: string;
            /** @description `stock`, `home`, `host` or `mcp`. */
            origin: string;
            /** @description Whether it says that it only reads. */
            read_only: boolean;
            /** @description JSON Schema of its arguments. */
            schema: unknown;
            /** @description The MCP server that it is called at; absent where it is none's. */
            server?: string | null;
        };
        /** @description All tools, by name. */
        Tools: {
            /** @description Faults of tools that are left out. */
            problems: string[];
            tools: components["schemas"]["ToolBody"][];
        };
        /** @description The directory whose last apply is taken back. */
        UndoBody: {
            /** @description The directory, as agents see it; absent = `/workspace`. */
            place?: string | null;
        };
        /** @description Paths that are as they were before the last apply. */
        UndoneBody: {
            /**
             * Format: int64
             * @description How many files and links that is, with those in directories that are back.
             */
            files: number;
            restored: string[];
        };
        /** @description The usage, the oldest day first. Days without use have no row. */
        Usage: {
            days: components["schemas"]["DayBody"][];
            /** @description The same amounts, counted apart as `by` asks; absent without it. */
            rows?: components["schemas"]["PartBody"][] | null;
            /** @description The first day that counts. */
            since: string;
        };
        /** @description The usage. */
        Used: {
            /**
             * Format: int64
             * @description Input tokens from the provider's cache.
             * @default 0
             */
            cached_tokens: number;
            /**
             * Format: int64
             * @description Fuel of all tool calls.
             * @default 0
             */
            fuel: number;
            /**
             * Format: int64
             * @description Input tokens, cached ones included.
             * @default 0
             */
            input_tokens: number;
            /**
             * Format: int64
             * @description Output tokens.
             * @default 0
             */
            output_tokens: number;
            /**
             * Format: int64
             * @description Steps.
             * @default 0
             */
            steps: number;
            /**
             * Format: int64
             * @description Tool calls.
             * @default 0
             */
            tool_calls: number;
        };
        /** @description An agent to look at. */
        ValidateBody: {
            /** @description The name that it would have. Absent: what its text says. */
            slug?: string | null;
            /** @description The markdown file. */
            text: string;
        };
        /** @description The agent that a text would be. */
        Validated: {
            definition?: components["schemas"]["DefinitionBody"] | null;
            /** @description Findings that its author should know. */
            diagnostics: components["schemas"]["DiagnosticBody"][];
            /** @description Whether it could be kept. */
            valid: boolean;
        };
        /** @description The word of one source. */
        VoteBody: {
            /** @description Who. */
            source: string;
            /** @description `allows`, `asks`, `refuses` or `says nothing`. */
            verdict: string;
            /** @description Why, in a few words. */
            why: string;
        };
        /** @description Something that an agent does not get. */
        WithheldBody: {
            /** @description Who withholds it. */
            by: string;
            /** @description The request, for a person. */
            wanted: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description text */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    ready: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    list_agents: {
        parameters: {
            query?: {
                /** @description `next` of the page before */
                after?: string;
                /** @description only those of `home`, `workspace`, `library` (all of them) or `library/NAME` */
                scope?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Agents"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    create_agent: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewAgentBody"];
            };
        };
        responses: {
            /** @description done */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentBody"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request took too long to arrive */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the name is taken */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the body has to be JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the agent cannot be used */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    read_agent: {
        parameters: {
            query?: {
                /** @description only those of `home`, `workspace`, `library` (all of them) or `library/NAME` */
                scope?: string;
            };
            header?: never;
            path: {
                slug: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentBody"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    replace_agent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                slug: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AgentTextBody"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentBody"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request took too long to arrive */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description somebody else has changed it */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the body has to be JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the agent cannot be used */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request has to say what it replaces */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    delete_agent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                slug: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentDeleted"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    validate_agent: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ValidateBody"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Validated"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request took too long to arrive */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the body has to be JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    read_audit: {
        parameters: {
            query?: {
                /** @description only lines of this action */
                action?: string;
                /** @description only lines of this one */
                actor?: string;
                /** @description `next` of the page before */
                before?: string;
                /** @description how many rows; 50 where it is absent. A page ends behind 2 MiB, with fewer */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditPage"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    chat: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChatBody"];
            };
        };
        responses: {
            /** @description its outcome; with `stream`, events and at last `done` with the same */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Answered"];
                    "text/event-stream": {
                        data: string;
                        event?: string;
                        id?: string;
                    };
                };
            };
            /** @description `in_flight`: a person is asked, and the turn waits for the answer; or the server stopped before its end, and it is resumed when that starts again */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Answered"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request took too long to arrive */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a turn is running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the body has to be JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the agent cannot be used */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests; what may be used in a day is used up */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description as much is stored as may be */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    complete_chat: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CompletionBody"];
            };
        };
        responses: {
            /** @description its outcome; with `stream`, events and at last `done` with the same */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Completion"];
                    "text/event-stream": {
                        data: string;
                        event?: string;
                        id?: string;
                    };
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the request took too long to arrive */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description a turn is running; the name is taken */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description somebody else has changed it */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the body has to be JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the agent cannot be used */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description too many requests; what may be used in a day is used up */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description as much is stored as may be */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    explain: {
        parameters: {
            query: {
                /** @description the agent's name */
                agent: string;
                /** @description a path as the agent sees it, or a URL; absent = the call itself */
                target?: string;
                /** @description the tool's name */
                tool: string;
                /** @description `true`: whether it may write there */
                write?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Explained"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    read_grants: {
        parameters: {
            query: {
                /** @description the agent's name */
                agent: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GrantsBody"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    list_libraries: {
        parameters: {
            query?: {
                /** @description `next` of the page before */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Libraries"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    login: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LoginBody"];
            };
        };
        responses: {
            /** @description done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description pages of this origin may not call; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request took too long to arrive */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the body has to be JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    logout: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    me: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Me"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    list_models: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Models"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    read_model: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                model: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Model"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    openapi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    preview: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PreviewBody"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Previewed"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request took too long to arrive */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the body has to be JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the agent cannot be used */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    list_questions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Questions"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    create_response: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewResponseBody"];
            };
        };
        responses: {
            /** @description its outcome; with `stream`, events and at last `done` with the same */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResponseBody"];
                    "text/event-stream": {
                        data: string;
                        event?: string;
                        id?: string;
                    };
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the request took too long to arrive */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description a turn is running; the name is taken */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description somebody else has changed it */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the body has to be JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the agent cannot be used */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description too many requests; what may be used in a day is used up */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description as much is stored as may be */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    read_response: {
        parameters: {
            query?: {
                /** @description with `stream`: the number of the last event of it that is known */
                starting_after?: number;
                /** @description `true`: event by event, as it was streamed first */
                stream?: boolean;
            };
            header?: never;
            path: {
                response: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description its outcome; with `stream`, events and at last `done` with the same */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResponseBody"];
                    "text/event-stream": {
                        data: string;
                        event?: string;
                        id?: string;
                    };
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    delete_response: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                response: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResponseDeleted"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description a turn is running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description somebody else has changed it */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    cancel_response: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                response: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResponseBody"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_input_items: {
        parameters: {
            query?: {
                /** @description the id of the last item of the page before */
                after?: string;
                /** @description how many items; 20 where it is absent */
                limit?: number;
                /** @description `desc`: the last first */
                order?: "desc" | "asc";
            };
            header?: never;
            path: {
                response: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InputItems"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    read_rights: {
        parameters: {
            query?: {
                /** @description `next` of the page before */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RightsBody"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    list_roles: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Roles"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    list_running: {
        parameters: {
            query?: {
                /** @description `true`: of every tenant, for the operator of the server */
                all?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Running"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    list_sessions: {
        parameters: {
            query?: {
                /** @description `next` of the page before */
                before?: string;
                /** @description only those of this kind */
                kind?: "api" | "chat" | "run" | "team";
                /** @description how many rows; 50 where it is absent */
                limit?: number;
                /** @description only those whose title has this text, in either case */
                q?: string;
                /** @description `true`: only those with a turn that runs */
                running?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sessions"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    delete_sessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Deleted"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a turn is running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    read_session: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionBody"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    delete_session: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Deleted"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a turn is running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    apply_changes: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ApplyBody"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AppliedBody"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request took too long to arrive */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a turn is running; the name is taken */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description somebody else has changed it */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the body has to be JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    list_attachments: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Attachments"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    read_attachment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                attachment: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the file */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": unknown;
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    cancel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CancelBody"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Cancelled"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request took too long to arrive */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the body has to be JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    read_changes: {
        parameters: {
            query?: {
                /** @description also the patch, up to 2 MiB */
                patch?: boolean;
                /** @description a path below the workspace, with all below it; absent = all */
                path?: string;
                /** @description so many changes of each directory, the first, are left out */
                skip?: number;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionChanges"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a turn is running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    read_contents: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ContentsBody"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    discard_changes: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DiscardBody"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DiscardedBody"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request took too long to arrive */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a turn is running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description somebody else has changed it */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the body has to be JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    watch_events: {
        parameters: {
            query?: {
                /** @description the id of the event that was seen last; 0 or absent = from the first */
                after?: number;
                /** @description `false`: end after what is stored */
                follow?: boolean;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description events, each with its id */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": {
                        data: string;
                        event?: string;
                        id?: string;
                    };
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    list_messages: {
        parameters: {
            query?: {
                /** @description `next` of the page before */
                before?: number;
                /** @description with all that each turn added to the conversation */
                full?: boolean;
                /** @description how many rows, at most 20 with `full`; a page ends behind 2 MiB, with fewer */
                limit?: number;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Messages"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    list_session_questions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Questions"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    answer: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                question: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AnswerBody"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Accepted"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request took too long to arrive */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the body has to be JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    list_receipts: {
        parameters: {
            query?: {
                /** @description `next` of the page before */
                before?: string;
                /** @description `csv`: one table, without `limit` */
                format?: "json" | "csv";
                /** @description how many rows; 50 where it is absent. A page ends behind 2 MiB, with fewer */
                limit?: number;
                /** @description only those of this turn */
                message?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Receipts"];
                    "text/csv": string;
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    resume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Resumed"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a turn is running */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    list_subagents: {
        parameters: {
            query?: {
                /** @description `next` of the page before */
                after?: string;
                /** @description how many rows; 50 where it is absent. A page ends behind 2 MiB, with fewer */
                limit?: number;
                /** @description only those of this turn */
                message?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Subagents"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    undo_apply: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UndoBody"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UndoneBody"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request took too long to arrive */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a turn is running; the name is taken */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the body has to be JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    list_tools: {
        parameters: {
            query?: {
                /** @description only those that this agent may use; `mcp` is a client that calls them itself */
                agent?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tools"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    read_usage: {
        parameters: {
            query?: {
                /** @description a list of `day`, `agent`, `model`: the sums of each, as `rows` */
                by?: string;
                /** @description the first day; absent = 30 days ago */
                since?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Usage"];
                };
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
    websocket: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a WebSocket: `ClientMessage` there, `ServerMessage` and events back */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the request cannot be understood */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description a valid key is needed */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the key does not allow this; pages of this origin may not call */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description this server does not go by that name */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the head of the request is larger than the server reads; the body is empty */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the server failed */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
            /** @description the server cannot do this now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemBody"];
                };
            };
        };
    };
}
