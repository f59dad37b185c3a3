// SPDX-License-Identifier: Apache-2.0

package access

import "slices"

// Rights of VCD's built-in roles, named as in VCD's API. The rights of vApp Author are those that VMware's Terraform
// provider shows for a VCD 10.6. Those of Catalog Author and vApp User are derived from it according to VMware's
// guides.

func rightsOfVAppAuthor() []string {
	return []string{
		rightCatalogAdd, rightCatalogView, rightPolicyView,
		rightDiskCreate, rightDiskDelete, rightDiskEdit, "Organization vDC Named Disk: View Encryption Status",
		rightDiskView, "Organization vDC Network: View Properties", rightAffinity, "Organization: View",
		"UI Plugins: View", "VAPP_VM_METADATA_TO_VCENTER", "vApp Template / Media: Copy", rightMediaEdit,
		rightMediaView,
		"vApp Template: Checkout", "vApp: Copy", rightVAppCreate, rightVAppDelete, "vApp: Download", rightVAppEdit,
		"vApp: Edit VM CPU", "vApp: Edit VM Compute Policy", "vApp: Edit VM Hard Disk", "vApp: Edit VM Memory",
		"vApp: Edit VM Network", rightVMEdit, "vApp: Manage VM Password Settings", rightVAppPower, rightVAppShare,
		rightSnapshot, "vApp: Upload", "vApp: Use Console", "vApp: VM Boot Options", rightVAppACL,
		"vApp: View VM and VM's Disks Encryption Status", "vApp: View VM metrics",
	}
}

func rightsOfCatalogAuthor() []string {
	return append(rightsOfVAppAuthor(), rightCatalogCreate, rightCatalogEdit, rightPublish, "Catalog: Sharing",
		"Catalog: View ACL", rightPublishedView, rightMediaUpload, "vApp Template: Download")
}

func rightsOfVAppUser() []string {
	return []string{
		"Organization: View", "UI Plugins: View", "vApp: Copy", rightVAppDelete, rightVAppEdit, "vApp: Edit VM Network",
		rightVMEdit, "vApp: Manage VM Password Settings", rightVAppPower, rightVAppShare, rightSnapshot,
		"vApp: Use Console", rightVAppACL,
	}
}

// builtInRole returns the rights of a built-in role.
func builtInRole(name string) (rights []string, found bool) {
	switch name {
	case "Organization Administrator":
		return defaultBundle(), true
	case "Catalog Author":
		return rightsOfCatalogAuthor(), true
	case "vApp Author":
		return rightsOfVAppAuthor(), true
	case "vApp User":
		return rightsOfVAppUser(), true
	case "Console Access Only":
		return []string{"Organization: View", "vApp: Use Console"}, true
	}
	// The identity provider defines the rights of this role. The simulator has no identity provider.
	return nil, name == "Defer to Identity Provider"
}

// defaultBundleName is the name of the rights bundle that is published to every organization.
const defaultBundleName = "Default Rights Bundle"

// defaultBundle returns the rights that every organization and its administrators have. They are the rights that
// VMware's Terraform provider shows for the bundle, without those only for NSX for vSphere, and the additional ones in
// VMware's guide to 10.5. It does not contain rights that a provider must publish first: any extra configuration of
// VMs, consolidating their disks, private IP Spaces, and the rights of entity types.
func defaultBundle() []string {
	return slices.Concat(rightsOfCatalogAuthor(), []string{
		"Access All Organization VDCs", rightOwnClients, rightAllClients, rightAccountView, rightAccountManage,
		"Catalog: Change Owner", "Catalog: VCSP Publish Subscribe", rightCertificateManage, rightCertificateView,
		"Custom entity: View all custom entity instances in org", "Custom entity: View custom entity instance",
		rightAdminControl, rightAdminView, "General: Send Notification", "Group / User: Manage", "Group / User: View",
		rightSpaceAllocate, "Metadata File Entry: Create/Modify",
		"Organization Network: Edit Properties", "Organization Network: View",
		"Organization VDC: view metrics", rightDFWConfigure, "Organization vDC Distributed Firewall: View Rules",
		"Organization vDC Gateway: Configure DHCP", "Organization vDC Gateway: Configure DNS", rightFirewallConfigure,
		rightIPsecConfigure, rightBalancerConfigure, rightNATConfigure,
		"Organization vDC Gateway: Configure Static Routing", "Organization vDC Gateway: Configure Syslog",
		rightEdgeView, "Organization vDC Gateway: View DHCP", "Organization vDC Gateway: View DNS", rightFirewallView,
		rightIPsecView, rightBalancerView, rightNATView,
		"Organization vDC Gateway: View Static Routing", "Organization vDC Named Disk: Change Owner",
		"Organization vDC Network: Edit Properties", "Organization vDC Storage Profile: Set Default",
		"Organization vDC: Edit", "Organization vDC: Edit ACL", "Organization vDC: Manage Firewall",
		"Organization vDC: View", "Organization vDC: View ACL", "Organization: Edit Association Settings",
		"Organization: Edit Federation Settings", "Organization: Edit Leases Policy",
		"Organization: Edit OAuth Settings", "Organization: Edit Password Policy", "Organization: Edit Properties",
		"Organization: Edit Quotas Policy", "Organization: Edit SMTP Settings",
		"Organization: Import User/Group from IdP while Editing VDC ACL", "Organization: view metrics",
		"Quota Policy Capabilities: View", rightRoleWrite, "SSL: Test Connection",
		"Service Library: View service libraries", "Truststore: Manage", "Truststore: View",
		"VDC Template: Instantiate", "VDC Template: View", "vApp Template: Change Owner", rightVAppOwner,
	})
}

// KubernetesBundle returns the rights that a provider publishes to an organization for Kubernetes clusters: those that
// the default bundle lacks.
func KubernetesBundle() []string {
	return []string{
		RightExtraConfig,
		RightConsolidate,
		rightSpaceView,
		rightSpaceManage,
		TypeRight("vmware", "capvcdCluster", TypeView),
		TypeRight("vmware", "capvcdCluster", TypeModify),
		TypeRight("vmware", "capvcdCluster", TypeFull),
		TypeRight("vmware", "capvcdCluster", TypeAdminView),
		TypeRight("vmware", "capvcdCluster", TypeAdminFull),
	}
}

// RightsOfCloudProvider returns the rights that a cloud controller manager requires to create load balancers for
// Services. The manager finds the VMs of another user. It creates pools, virtual services, NAT rules, IP sets and
// certificates, also with addresses from IP Spaces. It writes its section of the cluster's entity if that is shared
// with it.
func RightsOfCloudProvider() []string {
	return []string{
		rightAdminView,
		rightPolicyView,
		rightOwnClients,
		rightEdgeView,
		rightBalancerView,
		rightBalancerConfigure,
		rightNATView,
		rightNATConfigure,
		rightFirewallView,
		rightFirewallConfigure,
		rightCertificateView,
		rightCertificateManage,
		rightSpaceAllocate,
		rightSpaceView,
		TypeRight("vmware", "capvcdCluster", TypeModify),
	}
}

// RightsOfClusterAuthor returns the rights that Cluster API requires and passes on to the clusters that it creates.
// They are the rights of the role vApp Author, any extra configuration of VMs, entities of its type, and the rights of
// a cloud controller manager. A user with these rights sees only its own vApps.
func RightsOfClusterAuthor() []string {
	out := append(rightsOfVAppAuthor(), RightExtraConfig, RightConsolidate,
		TypeRight("vmware", "capvcdCluster", TypeFull))
	return append(out, slices.DeleteFunc(RightsOfCloudProvider(),
		func(right string) bool { return right == rightAdminView || slices.Contains(out, right) })...)
}

// IsBuiltInRole reports whether VCD has a built-in role of this name for tenants.
func IsBuiltInRole(name string) bool {
	_, found := builtInRole(name)
	return found
}
