// SPDX-License-Identifier: Apache-2.0

package vcdsim

// allAccessRoutes are the routes of sessions, roles and tokens.
func allAccessRoutes(add addRoute) {
	sessionRoutes(add)
	roleRoutes(add)
	tokenRoutes(add)
}
