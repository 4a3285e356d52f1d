/** Every word of the page, in English, a file for each part of it. Another language is another folder of
 * this form. */

import { agents } from './agents';
import { frame } from './frame';
import { glass } from './glass';
import { lists } from './lists';
import { rights } from './rights';
import { sessions } from './sessions';

export const text = { ...frame, ...sessions, ...glass, ...agents, ...rights, ...lists };
