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
];
