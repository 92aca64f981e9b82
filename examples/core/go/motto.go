// Package core holds what every service of the house says alike.
package core

// Motto is shown beside whatever a service answers.
const Motto = "open to all"
