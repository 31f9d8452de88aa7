package directory

import (
	"strings"
	"sync"
)

// Words that people use for one another when they ask for a tool, written for
// this program. A word stands for the other words of its lines, in queries
// only. Words that mean opposite things are never in one line, whatever word
// vectors say of them.

// sameThings are two names of one thing.
const sameThings = `
repo repository
k8s kubernetes
db database
email mail
e-mail email mail
pic picture photo
dir directory folder
docs documentation
doc document
config configuration settings
env environment
org organization organisation
auth authentication
admin administrator
app application
info information
img image
msg message
pkg package
url link
spec specification
calc calculate calculator
lang language
temp temperature
stats statistics
perf performance
dept department
acct account
tx transaction
txn transaction
crypto cryptocurrency
btc bitcoin
eth ethereum
pdf document
pr pull
mr merge
vm machine
ci pipeline build
cicd pipeline
gh github
gcal calendar
yt youtube
tz timezone
sms text message
ssn social security
kpi metric
ocr recognize text
tts speech
stt transcribe speech
ai model
llm model
ip address
dns domain
sql query database
csv spreadsheet
xlsx excel spreadsheet
docx word document
pptx powerpoint presentation
colour color
organise organize
summarise summarize
analyse analyze
visualise visualize
categorise categorize
cancelled canceled
catalogue catalog
favourite favorite
`

// nearThings are close enough to look for when the word itself is not there.
const nearThings = `
create add new make insert generate build
create register open
create start launch
create write compose draft
delete remove erase clear drop destroy purge trash
get fetch retrieve read show view obtain return
get find lookup check
list enumerate browse all show display
search find query lookup discover locate seek
update edit modify change set alter adjust revise
update replace overwrite
update patch refresh
send post deliver dispatch submit
run execute invoke trigger perform launch
start begin launch resume boot
stop cancel abort terminate kill halt shut
close finish end complete resolve
pause suspend freeze
upload push publish
download export save pull
import load ingest
copy duplicate clone replicate
move transfer relocate shift
rename retitle relabel
convert transform translate change
translate translation language
analyze inspect examine evaluate assess review
compare diff difference versus
summarize summary digest overview
verify validate check confirm
schedule book reserve plan
reservation booking appointment
buy purchase order acquire
sell sale
pay payment charge checkout billing
invoice bill receipt
refund reimburse chargeback
subscribe subscription follow
unsubscribe unfollow
attach attachment upload
assign assignee delegate allocate
approve accept authorize
reject decline deny refuse
invite invitation
join enter
share grant permission
lock protect secure
archive backup
restore recover undo revert
merge combine join
split divide separate
sort order rank
filter select narrow
count number total amount
calculate compute solve evaluate
convert conversion exchange
measure metric
monitor watch track observe
notify alert notification reminder
remind reminder alarm
message chat conversation dm text
comment reply note annotation
channel room
thread conversation discussion
mail message inbox
contact person people address
user account member person profile
customer client buyer
employee staff worker personnel
team group
company business firm corporation enterprise organization
boss manager supervisor
file document
folder directory path
table spreadsheet sheet grid
spreadsheet excel workbook sheet
row record entry line
column field
database sql table
repository project codebase
commit revision change
branch ref
issue ticket bug task problem
task todo item
board kanban
sprint iteration
milestone deadline due
calendar event meeting schedule
event happening occasion
meeting call conference appointment
agenda schedule
free available availability busy
website site webpage web page url
link url hyperlink
scrape crawl extract harvest
browse navigate visit open
click press tap
screenshot capture snapshot picture
image picture photo photograph
draw sketch paint illustrate
video clip movie film footage
movie film cinema
song music track audio tune
listen play
podcast episode
lyrics song
book novel literature
news headline article story
article post paper
paper publication research study journal
weather forecast climate rain temperature
location place position coordinates gps
map route direction navigation
distance far length
address street location
trip travel journey vacation itinerary
flight plane airline airfare
hotel lodging accommodation stay
restaurant food dining eat
recipe cook dish meal
drink beverage
grocery shopping supermarket
store shop market
product item goods merchandise
price cost quote rate fee
cheap discount deal coupon offer
stock share equity ticker
market exchange trading
crypto coin token bitcoin
wallet balance
bank finance money
loan mortgage credit
tax income
salary wage pay payroll compensation
budget expense spending
profit revenue income earnings
job career vacancy position employment
resume cv
holiday leave vacation
doctor physician medical
medicine drug medication pharmaceutical
disease illness condition symptom
health wellness fitness
exercise workout training
diet nutrition calorie food
car vehicle automobile
house home property estate
apartment rent rental lease
pet dog cat animal
plant garden
school education course class
learn study teach lesson
student pupil
exam test quiz
question query ask
answer reply response
law legal regulation
contract agreement
government politics
court lawsuit
crime police
password credential secret
login signin authenticate session
key secret token credential
permission access role right
encrypt encode cipher
decrypt decode
hash checksum
container docker
cluster node
pod container
deploy deployment release rollout
server host machine instance
log trace
error exception failure crash fault
incident outage alert
status state health
performance speed latency
memory ram
disk storage space
process job
function lambda method
code source program script
compile build
test spec
lint format style
debug troubleshoot diagnose
package library dependency module
install setup add
version release
queue message
bucket storage blob
dashboard chart panel
chart graph plot diagram visualization
statistics analytics metrics report
report summary
pipeline workflow automation
webhook callback
history past previous log
recent latest newest last
current today present
time clock hour
date day
timezone zone
age birthday
remember memory store recall save
forget delete
idea suggestion recommendation
recommend suggest
similar related alike like
random generate
game play gaming
sport match
score result
joke funny humor
poem poetry
gift present
clothes clothing fashion outfit
color palette
font typography
slide presentation powerpoint deck
page slide
sound audio noise
voice speech speak
transcribe transcript caption subtitle
record capture
phone call telephone mobile
light lamp bulb
heat temperature thermostat
device hardware sensor
battery power
tweet twitter
video youtube
tag label category
category type kind
title name heading
description detail
detail information
size dimension
limit quota
list inventory catalog
`

// synonym is one word that stands for another.
type synonym struct {
	term string
	same bool // another name of the same thing
}

// synonyms gives for each term the terms that stand for it.
var synonyms = sync.OnceValue(func() map[string][]synonym {
	table := make(map[string][]synonym)
	add := func(list string, same bool) {
		for line := range strings.Lines(list) {
			var terms []string
			for _, w := range appendWords(nil, line) {
				terms = append(terms, w.term)
			}
			for _, from := range terms {
				for _, to := range terms {
					if from != to && !hasSynonym(table[from], to) {
						table[from] = append(table[from], synonym{to, same})
					}
				}
			}
		}
	}
	add(sameThings, true)
	add(nearThings, false)
	return table
})

func hasSynonym(list []synonym, term string) bool {
	for _, s := range list {
		if s.term == term {
			return true
		}
	}
	return false
}

// phraseList is pairs of words that mean other words together.
const phraseList = `
sign off: approve
take back: delete undo retract
get rid: delete remove
look up: search get find
set up: create configure setup
turn on: enable start
turn off: disable stop
switch on: enable start
switch off: disable stop
shut down: stop
log in: login
sign in: login
sign up: register
find out: get search
put in: insert add
put into: insert add
throw away: delete
throw out: delete
work item: issue ticket
work items: issue ticket
pull request: pr
merge request: mr
pull requests: pr
merge requests: mr
to do: todo task
to dos: todo task
time zone: timezone
web site: website
web page: webpage
write down: create note
fill in: fill complete
fill out: fill complete
make up: generate
call off: cancel
bring back: restore
roll back: rollback revert
spin up: create start
boil down: summarize
sum up: summarize
add up: sum calculate
how many: count
how much: price cost calculate
how far: distance
how long: duration
how tall: height
how old: age
how hot: temperature
how cold: temperature
who is: get person
what time: time
what day: date
day off: leave
days off: leave
time off: leave
sick leave: leave
phone number: phone
tear down: delete destroy
take down: delete remove
take over: assign
hand over: assign
pass on: forward
send on: forward
check out: checkout get
check off: complete
tick off: complete
cross off: complete remove
back up: backup
speed up: optimize
clean up: delete cleanup
wipe out: delete
scale up: scale
scale down: scale
read out: speak read
read aloud: speech
speak aloud: speech
write to: send message
reach out: send contact
get hold: contact
is there: list
are there: list
do i have: list
`

// phrases gives the words that two neighbouring words mean together.
var phrases = sync.OnceValue(func() map[[2]string][]*word {
	table := make(map[[2]string][]*word)
	for line := range strings.Lines(phraseList) {
		if pair, meaning, ok := strings.Cut(line, ":"); ok {
			w := appendWords(nil, pair)
			table[[2]string{w[0].text, w[1].text}] = appendWords(nil, meaning)
		}
	}
	return table
})
