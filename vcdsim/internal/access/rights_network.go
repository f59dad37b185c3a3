// SPDX-License-Identifier: Apache-2.0

package access

import "net/http"

// Rights for network objects. Reading also requires a right.
const (
	rightEdgeView          = "Organization vDC Gateway: View"
	rightBalancerView      = "Organization vDC Gateway: View Load Balancer"
	rightBalancerConfigure = "Organization vDC Gateway: Configure Load Balancer"
	rightNATView           = "Organization vDC Gateway: View NAT"
	rightNATConfigure      = "Organization vDC Gateway: Configure NAT"
	rightFirewallView      = "Organization vDC Gateway: View Firewall"
	rightFirewallConfigure = "Organization vDC Gateway: Configure Firewall"
	rightIPsecView         = "Organization vDC Gateway: View IPSec VPN"
	rightIPsecConfigure    = "Organization vDC Gateway: Configure IPSec VPN"
	rightDFWConfigure      = "Organization vDC Distributed Firewall: Configure Rules"
	rightCertificateView   = "Certificate Library: View"
	rightCertificateManage = "Certificate Library: Manage"
	rightSpaceAllocate     = "IP Spaces: Allocate"
	rightSpaceView         = "Private IP Spaces: View"
	rightSpaceManage       = "Private IP Spaces: Manage"
)

const (
	edgeOperations        = "/cloudapi/1.0.0/edgeGateways"
	secondEdgeOperations  = "/cloudapi/2.0.0/edgeGateways"
	spaceOperations       = "/cloudapi/1.0.0/ipSpaces"
	certificateOperations = "/cloudapi/1.0.0/ssl/certificateLibrary"
)

// NetworkNeeds are the needs of requests for gateways and their objects. The first match decides. No source lists the
// rights for application port profiles and firewall groups. VMware's role for authors of Kubernetes clusters has the
// rights for NAT and none for firewalls, and its clients create port profiles for their NAT rules with that role.
var NetworkNeeds = []Need{
	{http.MethodGet, edgeOperations + "/nat/", "", []string{rightNATView}, "GATEWAY_NAT_VIEW"},
	{"", edgeOperations + "/nat/", "", []string{rightNATConfigure}, "GATEWAY_NAT_CONFIGURE"},
	{http.MethodGet, edgeOperations + "/loadBalancer", "", []string{rightBalancerView}, "LOAD_BALANCER_VIEW"},
	{http.MethodGet, edgeOperations + "/firewall/", "", []string{rightFirewallView}, "GATEWAY_FIREWALL_VIEW"},
	{"", edgeOperations + "/firewall/", "", []string{rightFirewallConfigure}, "GATEWAY_FIREWALL_CONFIGURE"},
	{http.MethodGet, edgeOperations + "/ipsec/", "", []string{rightIPsecView}, "GATEWAY_IPSEC_VPN_VIEW"},
	{"", edgeOperations + "/ipsec/", "", []string{rightIPsecConfigure}, "GATEWAY_IPSEC_VPN_CONFIGURE"},
	{http.MethodGet, secondEdgeOperations + "/firewall/", "", []string{rightFirewallView}, "GATEWAY_FIREWALL_VIEW"},
	{"", secondEdgeOperations + "/firewall/", "", []string{rightFirewallConfigure}, "GATEWAY_FIREWALL_CONFIGURE"},
	{http.MethodGet, edgeOperations, "", []string{rightEdgeView}, "GATEWAY_VIEW"},
	{http.MethodGet, "/api/admin/edgeGateway", "", []string{rightEdgeView}, "GATEWAY_VIEW"},
	{http.MethodGet, "/api/edgeGateway", "", []string{rightEdgeView}, "GATEWAY_VIEW"},
	{http.MethodGet, "/cloudapi/1.0.0/loadBalancer/", "", []string{rightBalancerView}, "LOAD_BALANCER_VIEW"},
	{
		"",
		"/cloudapi/1.0.0/loadBalancer/virtualServices",
		"",
		[]string{rightBalancerConfigure},
		"LOAD_BALANCER_VIRTUAL_SERVICE_CONFIGURE",
	},
	{"", "/cloudapi/1.0.0/loadBalancer/pools", "", []string{rightBalancerConfigure}, "LOAD_BALANCER_POOL_CONFIGURE"},
	{
		"",
		"/cloudapi/1.0.0/loadBalancer/healthMonitors",
		"",
		[]string{rightBalancerConfigure},
		"LOAD_BALANCER_HEALTH_MONITOR_CONFIGURE",
	},
	{
		http.MethodGet,
		"/cloudapi/1.0.0/applicationPortProfiles",
		"",
		[]string{rightEdgeView},
		"APPLICATION_PORT_PROFILE_VIEW",
	},
	{
		"",
		"/cloudapi/1.0.0/applicationPortProfiles",
		"",
		[]string{rightNATConfigure, rightFirewallConfigure},
		"APPLICATION_PORT_PROFILE_MANAGE",
	},
	{http.MethodGet, "/cloudapi/1.0.0/firewallGroups", "", []string{rightEdgeView}, "FIREWALL_GROUP_VIEW"},
	{
		"",
		"/cloudapi/1.0.0/firewallGroups",
		"",
		[]string{rightFirewallConfigure, rightDFWConfigure},
		"FIREWALL_GROUP_MANAGE",
	},
	{http.MethodGet, certificateOperations, "", []string{rightCertificateView}, "CERTIFICATE_LIBRARY_VIEW"},
	{"", certificateOperations, "", []string{rightCertificateManage}, "CERTIFICATE_LIBRARY_MANAGE"},
	{http.MethodGet, spaceOperations, "", []string{rightSpaceAllocate, rightSpaceView}, "IP_SPACE_VIEW"},
	{"", spaceOperations + "/alloca", "", []string{rightSpaceAllocate}, "IP_SPACE_ALLOCATE"},
	{"", spaceOperations, "", []string{rightSpaceManage}, "IP_SPACE_MANAGE"},
}
