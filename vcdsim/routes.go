// SPDX-License-Identifier: Apache-2.0

package vcdsim

import "time"

func (fe *frontend) addRoutes() {
	add := func(method, pattern string, h handler, latency time.Duration) {
		fe.routes.Add(method, pattern, endpoint{handle: h, latency: latency})
	}
	open := func(method, pattern string, h handler, latency time.Duration) {
		fe.routes.Add(method, pattern, endpoint{handle: h, latency: latency, open: true})
	}
	openRoutes(open)
	uploadRoutes(open)
	for _, group := range routeGroups() {
		group(add)
	}
	fe.sim.control.addRoutes()
}

// routeGroups add the routes that need a session.
func routeGroups() []func(addRoute) {
	return []func(addRoute){
		allAccessRoutes,
		orgsRoutes,
		vdcsRoutes,
		catalogsRoutes,
		computeRoutes,
		networkRoutesAll,
		balancerRoutes,
		entityRoutes,
		queryRoutes,
		func(add addRoute) { collectionRoutes(add, collections()) },
		func(add addRoute) { settingRoutes(add, settings()) },
	}
}
