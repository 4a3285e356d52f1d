import { render } from 'preact';
import { App } from './frame/app';
import { startKeys } from './lib/keys';
import { startRouter } from './router';
import './style/tokens.css';
import './style/base.css';
import './style/parts.css';
import './frame/frame.css';
import './views/sessions/sessions.css';

const page = document.getElementById('page');
if (page) {
  startRouter();
  startKeys();
  render(<App />, page);
}
