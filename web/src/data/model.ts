// The entities as the daemon sends them, by the names this view uses. The shapes are
// generated from the daemon's own contract; none is written here.

import type { components } from "#client/schema.gen";

type Schemas = components["schemas"];

export type Session = Schemas["AgentSession"];
export type SessionDetail = Schemas["AgentSessionDetail"];
export type SessionPage = Schemas["AgentSessionPage"];
export type Turn = Schemas["Turn"];
export type TurnPage = Schemas["TurnPage"];
export type Outcome = NonNullable<Turn["outcome"]>;
export type Usage = Schemas["Usage"];
export type Message = Schemas["Message"];
export type MessagePage = Schemas["MessagePage"];
export type Interaction = Schemas["Interaction"];
export type Option = Schemas["InteractionOption"];
export type Question = Schemas["InteractionQuestion"];
export type Answer = Schemas["InteractionResponse"];
export type Operation = Schemas["Operation"];
export type Target = Schemas["OperationTarget"];
export type Process = Schemas["Process"];
export type Gate = Schemas["Gate"];
export type Workspace = Schemas["Workspace"];
export type ProviderCard = Schemas["Provider"];
export type NewSession = Schemas["NewAgentSession"];
export type Frame = Schemas["StreamFrame"];
export type LogEvent = Schemas["Event"];
export type Delta = Schemas["StreamDelta"];
