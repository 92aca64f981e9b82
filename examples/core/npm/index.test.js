'use strict';

const assert = require('node:assert');
const test = require('node:test');
const { motto } = require('./index.js');

test('the motto is said', () => assert.notStrictEqual(motto, ''));
