import assert from 'node:assert/strict';
import test from 'node:test';
import { motto } from '@example/core';
import { HEADLINE, page, screenOf } from '../app/screen';

test('the screen names its node and says the headline', () => {
  assert.deepEqual(screenOf('alpha'), { module: 'kiosk', node: 'alpha', headline: HEADLINE, motto });
});

test('the headline is short enough for the window', () => {
  assert.ok(HEADLINE.length > 0 && HEADLINE.length <= 40, `${HEADLINE.length} characters`);
});

test('a name is text, never markup', () => {
  assert.ok(!page(screenOf('<script>')).includes('<script>'));
});
