// SPDX-License-Identifier: Apache-2.0

package vcdsim

// catalogsRoutes are the routes of catalogs, templates, media, and of the sections of vApps and templates.
func catalogsRoutes(add addRoute) {
	catalogRoutes(add)
	mediaRoutes(add)
	templateRoutes(add)
	sectionRoutes(add)
}
