// SPDX-License-Identifier: Apache-2.0

package main

// drawings are the pictures of the documentation, by file.
var drawings = map[string]drawing{
	"docs/concepts/images/architecture.svg":             architecture,
	"docs/concepts/images/service.svg":                  service,
	"docs/networking/images/cloud-provider.svg":         cloudProvider,
	"docs/networking/images/endpoints.svg":              endpoints,
	"docs/networking/images/load-balancer.svg":          loadBalancer,
	"docs/operate/images/move.svg":                      move,
	"docs/operate/images/zones.svg":                     zones,
	"docs/reference/kinds/images/life-of-a-machine.svg": machine,
}

var architecture = drawing{
	title:       "Architecture",
	description: "A management cluster runs Cluster API and this provider. The provider calls VMware Cloud Director, whose VMs become the Nodes of a workload cluster. The cloud controller manager runs there and calls VMware Cloud Director too.",
	items: []item{
		frame("Management cluster",
			other("Cluster API", "Cluster, KubeadmControlPlane,", "MachineDeployment, Machine"),
			down("infrastructureRef"),
			row{part("VCDCluster"), part("VCDMachine"), part("VCDIdentity")},
			down(),
			part("controllers", "phases, conditions, events"),
			down(),
			row{
				part("internal/vcd", "sessions, tasks,", "caches, limits"),
				part("guestinfo", "builds guest", "properties"),
				part("kubevip", "builds the", "static pod"),
			},
		),
		down("HTTPS, one session"),
		frame("VMware Cloud Director",
			row{other("organization", "VDC, network, gateway"), other("catalog", "template")},
			frame("vApp", row{other("VM"), other("VM"), other("VM")}),
		),
		down("cloud-init reads", "guest properties"),
		frame("Workload cluster",
			row{other("Node"), other("Node"), other("Node")},
			part("cloud controller manager", "addresses, type and zone of Nodes;", "load balancers of Services, with HTTPS to VCD"),
		),
	},
}

var service = drawing{
	title:       "Flow of a Service through the code",
	description: "A Service and Nodes become a desired load balancer. The plan compares it with the state in VCD and returns steps, each of which is one write.",
	items: []item{
		other("Service and Nodes"),
		down(),
		part("cpi", "core without code for a specific cloud"),
		down(),
		part("cpi/service", "computes the desired state"),
		down("desired state"),
		part("cpi/vcd", "VCD backend: reads its annotations"),
		down("lb.Desired"),
		part("internal/lb", "compares desired and observed state"),
		down("steps"),
		part("internal/edge", "runs a step: one write, then reads again"),
		down("writes and lists"),
		frame("VMware Cloud Director: edge gateway",
			row{other("virtual service"), other("pool"), other("address")},
			row{other("certificate"), other("firewall rule")},
		),
	},
}

var loadBalancer = drawing{
	title:       "Path of a request to a Service",
	description: "A client connects to the external address of the virtual service on the edge gateway. Its pool has the node port of each Node. kube-proxy or the network plug-in forwards the request to a pod.",
	items: []item{
		other("Client"),
		down("203.0.113.20:80", "EXTERNAL-IP of the Service"),
		frame("Edge gateway with NSX Advanced Load Balancer",
			part("virtual service", "one for each port"),
			down(),
			part("pool", "health monitor; a member for each Node"),
		),
		down("node port, such as 31080"),
		frame("Network of the nodes",
			row{
				other("Node", "192.168.100.10"),
				other("Node", "192.168.100.11"),
				other("Node", "192.168.100.12"),
			},
		),
		down("kube-proxy or", "network plug-in"),
		other("Pod", "targetPort 8080"),
	},
}

var cloudProvider = drawing{
	title:       "Installation of the cloud controller manager",
	description: "The manager renders manifests into a Secret. The ClusterResourceSet controller of Cluster API applies them to the workload cluster. The manager then checks and repairs them every five minutes.",
	items: []item{
		frame("Management cluster",
			row{part("VCDCluster", "cloudProvider,", "loadBalancer"), part("VCDIdentity", "shareWithClusters:", "true")},
			down("manifests, rendered", "by the manager"),
			part("Secret <cluster>-cloud-provider", "configuration, credentials, Deployment, RBAC"),
			down(),
			other("ClusterResourceSet of Cluster API", "applies them when the control plane answers"),
		),
		down("the manager repairs them", "every 5 minutes"),
		frame("Workload cluster",
			part("Deployment in kube-system", "cloud controller manager"),
			down("addresses, zone, type;", "removes the taint"),
			row{other("Node"), other("Node"), other("Node")},
		),
	},
}

var endpoints = drawing{
	title:       "Types of control plane endpoints",
	description: "KubeVIP: one control plane node has the virtual IP, and another takes it over. EdgeGateway: a virtual service on the edge gateway forwards to all control planes. External: your own load balancer does so.",
	items: []item{
		frame("KubeVIP: a virtual IP on a control plane",
			other("192.168.100.200:6443"),
			down("kube-vip, on the node", "with the lease"),
			row{other("control plane", "has the IP"), other("control plane", "standby"), other("control plane", "standby")},
		),
		frame("EdgeGateway: a virtual service",
			other("203.0.113.10:6443"),
			down("virtual service and pool", "on the edge gateway"),
			row{other("control plane"), other("control plane"), other("control plane")},
		),
		frame("External: your own load balancer",
			other("api.demo.example.com:6443"),
			down("you add and remove", "its members"),
			row{other("control plane"), other("control plane"), other("control plane")},
		),
	},
}

var zones = drawing{
	title:       "Failure domains of a cluster",
	description: "A VCDCluster selects three VCDDeploymentZones by label. Each refers to a VCDFailureDomain, which names a VDC. All VDCs share a network of a data center group.",
	items: []item{
		part("VCDCluster demo", "failureDomainSelector"),
		down("selects by label"),
		row{part("zone a", "VCDDeploy-", "mentZone"), part("zone b", "VCDDeploy-", "mentZone"), part("zone c", "VCDDeploy-", "mentZone")},
		down("failureDomain"),
		row{part("domain a", "VCDFailure-", "Domain"), part("domain b", "VCDFailure-", "Domain"), part("domain c", "VCDFailure-", "Domain")},
		down("names a VDC"),
		frame("VMware Cloud Director",
			row{other("VDC a", "vApp demo-a"), other("VDC b", "vApp demo-b"), other("VDC c", "vApp demo-c")},
			other("network of a data center group", "shared by the VDCs"),
		),
	},
}

var move = drawing{
	title:       "What clusterctl move does",
	description: "clusterctl move pauses the clusters, creates all objects in the new management cluster, deletes them in the old one and unpauses the clusters. The VMs in VMware Cloud Director do not change, and the new manager finds them by ID and marker.",
	items: []item{
		frame("Old management cluster",
			other("1. clusters are paused", "the manager changes nothing in VCD"),
			row{part("VCDCluster"), part("VCDMachines"), part("VCDIdentity", "and Secret")},
		),
		down("2. clusterctl creates", "all objects in the new one"),
		frame("New management cluster",
			row{part("VCDCluster"), part("VCDMachines"), part("VCDIdentity", "and Secret")},
			other("3. objects in the old one are deleted"),
			other("4. clusters are unpaused"),
		),
		down("the manager finds VMs", "by ID and ownership marker"),
		frame("VMware Cloud Director: no change",
			row{other("VM"), other("VM"), other("VM")},
		),
	},
}

var machine = drawing{
	title:       "Life of a machine",
	description: "The conditions of a VCDMachine become True in order: bootstrap data and placement, addresses, vApp and VM, guest properties, power-on, addresses of the guest. Then the VM becomes a Node. On deletion, the VM is shut down and deleted, and its addresses are released.",
	items: []item{
		frame("Before VCD changes",
			other("BootstrapReady", "the bootstrap provider wrote its data"),
			down(),
			other("PlacementReady", "VDC, template, policies, networks found"),
			down("with IPAM pools"),
			other("AddressesClaimed"),
		),
		down(),
		frame("In VCD",
			part("VAppReady, VMCreated", "the VM gets its marker and provider ID"),
			down(),
			part("BootstrapInjected", "guest properties and network"),
			down("control planes behind", "an edge gateway"),
			part("EndpointJoined"),
			down(),
			part("PoweredOn", "cloud-init runs kubeadm"),
			down(),
			part("AddressesReady"),
		),
		down("Ready"),
		other("Node", "with the provider ID of the VM"),
		down("kubectl delete machine:", "the Node is drained"),
		frame("Deletion",
			part("RemovedFromEndpoint", "control planes behind an edge gateway"),
			part("VMDeleted, VAppDeleted", "shut down first; disks are detached"),
			part("Released", "addresses return to their pools"),
		),
	},
}
