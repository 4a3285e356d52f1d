/** The one table of views. The first part of the path picks the row; each view is loaded when it
 * is first shown. */

import type { ComponentType } from 'preact';
import { text } from './text';

/** What a view is given: the parts of the path behind its own, and the words behind the `?`. */
export interface ViewProps {
  path: readonly string[];
  query: URLSearchParams;
}

export type View = ComponentType<ViewProps>;

/** A row of the table. */
export interface ViewRow {
  /** The first part of the path. */
  segment: string;
  /** The words of its link, and of the window's title. */
  label: string;
  /** `false`: the navigation does not list it. */
  listed: boolean;
  /** `true`: only who may change what the tenant has sees its link. */
  admin?: boolean;
  load: () => Promise<{ default: View }>;
}

export const VIEWS: readonly ViewRow[] = [
  {
    segment: 'sessions',
    label: text.nav.sessions,
    listed: false,
    load: () => import('./views/sessions'),
  },
  {
    segment: 'agents',
    label: text.agents.title,
    listed: true,
    load: () => import('./views/agents'),
  },
  {
    segment: 'rights',
    label: text.rights.title,
    listed: true,
    load: () => import('./views/rights'),
  },
  {
    segment: 'tools',
    label: text.tools.title,
    listed: true,
    load: () => import('./views/tools'),
  },
  {
    segment: 'usage',
    label: text.usage.title,
    listed: true,
    load: () => import('./views/usage'),
  },
  {
    segment: 'audit',
    label: text.audit.title,
    listed: true,
    admin: true,
    load: () => import('./views/audit'),
  },
  {
    segment: 'running',
    label: text.running.title,
    listed: true,
    load: () => import('./views/running'),
  },
  {
    segment: 'libraries',
    label: text.libraries.title,
    listed: true,
    load: () => import('./views/libraries'),
  },
];
