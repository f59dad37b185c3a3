// Package rbac lists what the manager may do, in one place, so that its rights can be reviewed as a whole. It holds no code:
// hack/generate.sh makes role.yaml from the markers below.
package rbac

// Our own kinds. Templates, identities and zones are the users'; the manager writes their metadata and status.
//
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdclusters;vcdclustertemplates;vcdmachines;vcdmachinetemplates;vcdidentities;vcdclusteridentities;vcdfailuredomains;vcddeploymentzones,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdclusters/status;vcdmachines/status;vcdmachinetemplates/status;vcdidentities/status;vcdclusteridentities/status;vcdfailuredomains/status;vcddeploymentzones/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdclusters/finalizers;vcdmachines/finalizers;vcdidentities/finalizers;vcdclusteridentities/finalizers,verbs=update

// Cluster API: owners are read, addresses are claimed.
//
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;clusters/status;machines;machines/status,verbs=get;list;watch
// +kubebuilder:rbac:groups=ipam.cluster.x-k8s.io,resources=ipaddressclaims,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=ipam.cluster.x-k8s.io,resources=ipaddresses,verbs=get;list;watch

// Kubernetes: Secrets hold credentials and bootstrap data (read) and kube-vip's files (written); an identity owns its Secret.
//
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch

// Migration of stored objects to this version of the API.
//
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions;customresourcedefinitions/status,resourceNames=vcdclusters.infrastructure.cluster.x-k8s.io;vcdclustertemplates.infrastructure.cluster.x-k8s.io;vcdmachines.infrastructure.cluster.x-k8s.io;vcdmachinetemplates.infrastructure.cluster.x-k8s.io;vcdidentities.infrastructure.cluster.x-k8s.io;vcdclusteridentities.infrastructure.cluster.x-k8s.io;vcdfailuredomains.infrastructure.cluster.x-k8s.io;vcddeploymentzones.infrastructure.cluster.x-k8s.io,verbs=update;patch

// Who may read the metrics.
//
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
