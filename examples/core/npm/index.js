'use strict';

exports.motto = 'open to all';
